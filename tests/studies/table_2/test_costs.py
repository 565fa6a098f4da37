"""The counted arithmetic of a run agrees with the formula, and grows with its tokens."""

import pytest

from transformer.model.config import TransformerConfig
from transformer.recipes.estimate import training_flops
from transformer_book.studies.translation.costs import training_work
from transformer_book.studies.translation.recorded import recorded_runs


def test_the_count_is_the_formula_for_a_transformer():
    record = recorded_runs()["multi30k-tiny-cpu-seed1"]
    config = TransformerConfig(**record["preset"]["model"])
    wanted = training_flops(config, 15, 15) / 15 * record["target_tokens"]
    assert training_work(record) == pytest.approx(wanted, rel=1e-6)


def test_the_architectures_cost_nearly_the_same():
    runs = recorded_runs()
    kinds = ("tiny", "recurrent", "convolutional")
    work = [training_work(runs[f"multi30k-{kind}-cpu-seed1"]) for kind in kinds]
    assert max(work) < 1.1 * min(work)
    twice = runs["multi30k-recurrent-cpu-seed1"]
    doubled = twice | {"target_tokens": 2 * twice["target_tokens"]}
    assert training_work(doubled) == pytest.approx(2 * work[1])
