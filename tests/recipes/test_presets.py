"""Presets are valid, every field can be changed, and a mistyped name gets a hint."""

import pytest
import torch

from transformer.data.corpora import corpus_names
from transformer.model.config import TransformerConfig
from transformer.recipes.architectures import build_model
from transformer.recipes.overrides import parse_changes
from transformer.recipes.presets import PRESETS


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_can_be_built(name):
    preset = PRESETS[name]
    with torch.device("meta"):
        model = build_model(preset.model)
    assert model.num_parameters() > 0
    assert preset.corpus in corpus_names()
    training = preset.training
    assert training.max_length is None or training.max_length <= training.batch_tokens
    assert training.warmup_steps < training.max_steps
    assert training.keep_last * training.save_every <= training.max_steps


def test_the_papers_presets_are_the_papers():
    base, big = PRESETS["wmt14-base"], PRESETS["wmt14-big"]
    assert base.model == TransformerConfig.base(37_000) and base.training.max_steps == 100_000
    assert big.model == TransformerConfig.big(37_000) and big.training.max_steps == 300_000
    for preset, averaged in ((base, 5), (big, 20)):
        assert (preset.beam_size, preset.alpha) == (4, 0.6)
        assert preset.training.keep_last == averaged
        assert preset.training.batch_tokens * preset.training.accumulate == 25_000


def test_the_command_repeats_the_preset():
    assert PRESETS["smoke"].command() == "transformer train smoke"
    changed = PRESETS["smoke"].with_changes(seed=3, d_model=64, clip_norm=1.0, max_length=2000)
    command = changed.command()
    start, *settings = command.split(" --set ")
    assert start == "transformer train smoke"
    assert PRESETS["smoke"].with_changes(**parse_changes(PRESETS["smoke"], settings)) == changed


def test_each_change_goes_where_its_field_is():
    smoke = PRESETS["smoke"]
    changed = smoke.with_changes(d_model=64, max_steps=9, beam_size=2, max_length=50)
    assert changed.model.d_model == 64 and changed.model.num_heads == smoke.model.num_heads
    assert changed.training.max_steps == 9 and changed.training.max_length == 50
    assert changed.beam_size == 2 and changed.name == "smoke"
    assert smoke == PRESETS["smoke"] and smoke.model.d_model == 32  # as it was
    assert smoke.with_changes(max_length=2000).model.max_length == 2000  # it fits the training


@pytest.mark.parametrize(
    "change", ["max_steps=0", "dropout=1.5", "beam_size=0", "train_pairs=0", "score_pairs=-1",
               "alpha=99", "text=moses", "penalty=google", "d_model=wide"],
)  # fmt: skip
def test_a_value_out_of_range_is_refused(change, unchecked):
    smoke = PRESETS["smoke"]
    with pytest.raises(ValueError, match=f"{change.partition('=')[0]} must be"):
        smoke.with_changes(**parse_changes(smoke, [change]))
