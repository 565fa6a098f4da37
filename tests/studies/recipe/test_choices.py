"""One option per choice, compared with base by seeds; the record is that of the recipes here."""

import math
from dataclasses import fields

import pytest
import torch

from transformer.model.transformer import Transformer
from transformer.recipes.record import read_record
from transformer_book.studies.left_out.choices import (
    CHOICES,
    NEW_SEEDS,
    RECORD,
    RETESTED,
    SEEDS,
    Effect,
    choice_preset,
    effects,
    recorded_effects,
)


def changed_fields(name):
    mine, base = choice_preset(name), choice_preset("base")
    return {
        field.name: getattr(part, field.name)
        for part, other in ((mine.model, base.model), (mine.training, base.training))
        for field in fields(part)
        if getattr(part, field.name) != getattr(other, field.name)
    }


def test_a_choice_changes_what_it_says_and_nothing_else():
    assert changed_fields("base") == {}
    assert changed_fields("pre-norm") == {"norm": "pre"}
    assert changed_fields("gated") == {"activation": "swiglu", "d_ff": 171}
    assert changed_fields("grouped") == {"num_kv_heads": 2}
    assert changed_fields("later-schedule") == {"learning_rate_factor": 0.8, "warmup_steps": 400}
    assert changed_fields("half-rate") == {"learning_rate_factor": 0.2}
    for name in CHOICES:
        assert len(changed_fields(name)) >= (name != "base"), name


def run(row, seed, perplexity, bleu=10.0):
    return dict(row=row, seed=seed, perplexity=perplexity, BLEU=bleu, parameters=7)


def test_effects_compare_seed_with_seed():
    runs = [run("base", 1, 10.0), run("base", 2, 20.0, 8.0), run("base", 3, 11.0)]
    runs += [run("gelu", 2, 10.0, 9.5), run("gelu", 1, 5.0, 12.0)]
    (found,) = effects(runs).values()
    assert found.nats == pytest.approx((math.log(2), math.log(2)))
    assert found.bleu == (2.0, 1.5) and found.parameters == 7


@pytest.mark.parametrize(
    "nats, verdict",
    [
        ((0.05, 0.06, 0.05), "better"),
        ((-0.05, -0.06, -0.05), "worse"),
        ((0.02, 0.09, 0.25), "no clear difference"),
        ((0.3, -0.1, 0.1), "no clear difference"),
        ((0.1, 0.3), "no clear difference"),
    ],
)
def test_a_verdict_needs_an_interval_without_zero(nats, verdict):
    assert Effect("x", nats, (0.0,) * len(nats), 1).verdict == verdict


def test_the_record_is_whole_and_of_the_recipes_that_are_here():
    runs = read_record(RECORD)["runs"]
    first = {(name, seed) for name in CHOICES for seed in SEEDS}
    second = {(name, seed) for name in ("base", *RETESTED) for seed in NEW_SEEDS}
    assert {(entry["row"], entry["seed"]) for entry in runs} == first | second
    with torch.device("meta"):
        for entry in runs:
            changes = changed_fields(entry["row"])
            recorded = entry["preset"]["model"] | entry["preset"]["training"]
            assert {name: recorded[name] for name in changes} == changes
            model = Transformer(choice_preset(entry["row"]).model)
            assert model.num_parameters() == entry["parameters"]


def test_the_two_tests_share_no_run():
    first, second = recorded_effects(), recorded_effects(NEW_SEEDS)
    assert set(first) == set(CHOICES) - {"base"} and set(second) == set(RETESTED)
    assert {len(effect.nats) for effect in first.values()} == {len(SEEDS)}
    for name, effect in second.items():
        assert len(effect.nats) == len(NEW_SEEDS)
        assert not set(effect.nats) & set(first[name].nats)
