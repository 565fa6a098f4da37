"""Presets on cards: the step stays, and its batches fit the memory."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from transformer.recipes import cards
from transformer.recipes.architectures import build_model
from transformer.recipes.cards import (
    CARDS,
    Card,
    describe_card,
    on_card,
    on_card_in,
    on_this_card,
    this_card,
)
from transformer.recipes.estimate import training_bytes
from transformer.recipes.presets import PRESETS

LARGE = ("tatoeba-large", "mixture-base", "wmt14-base", "wmt14-big")


def parameters(preset):
    with torch.device("meta"):
        return build_model(preset.model).num_parameters()


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("name", LARGE)
def test_a_preset_fits_every_card_with_the_same_step(name, card):
    preset, card = PRESETS[name], CARDS[card]
    fitted = on_card(preset, card)
    mine, theirs = fitted.training, preset.training
    assert mine.batch_tokens * mine.accumulate == theirs.batch_tokens * theirs.accumulate
    assert mine.batch_tokens >= mine.max_length
    assert training_bytes(fitted.model, mine, parameters(fitted)) <= 0.85 * card.memory
    assert mine.precision == card.precision == ("fp16" if card.title == "T4" else "bf16")
    free = ("batch_tokens", "accumulate", "precision", "checkpoint_activations")
    changes = {field: getattr(theirs, field) for field in free}
    assert replace(fitted, training=replace(mine, **changes)) == preset


def test_big_takes_as_few_batches_as_the_memory_allows():
    big, counts = PRESETS["wmt14-big"], {}
    for gigabytes in (150, 25, 16, 7, 5):
        training = on_card(big, replace(CARDS["a100"], memory=int(gigabytes * 1e9))).training
        counts[gigabytes] = (training.accumulate, training.checkpoint_activations)
    assert counts[150] == counts[25] == (1, False)
    assert counts[16][0] > 1 and not counts[16][1]
    # Even small batches need their activations recomputed, and then larger ones fit.
    assert counts[7][1] and counts[5][1]


def test_a_run_that_has_begun_keeps_its_batches_and_precision(tmp_path, monkeypatch):
    big, t4, h200 = PRESETS["wmt14-big"], CARDS["t4"], CARDS["h200"]
    assert on_card_in(big, t4, tmp_path / "new") == on_card(big, t4) != on_card(big, h200)
    begun = on_card(big, t4).training.to_dict()
    monkeypatch.setattr(cards, "settings_of", lambda folder: begun)
    assert on_card_in(big, h200, tmp_path) == on_card(big, t4)
    asked = on_card_in(big, h200, str(tmp_path), {"precision"}).training
    assert asked.precision == "bf16" and asked.accumulate == begun["accumulate"] > 1
    # Presets in float32 are left alone.
    assert on_card_in(PRESETS["smoke"], h200, tmp_path) == PRESETS["smoke"]


def test_a_preset_is_fitted_to_the_gpu_of_the_machine(tmp_path, monkeypatch):
    big, t4 = PRESETS["wmt14-big"], CARDS["t4"]
    assert on_this_card(big) is big  # without a GPU
    monkeypatch.setattr(cards, "this_card", lambda: t4)
    assert on_this_card(big) == on_this_card(big, tmp_path) == on_card(big, t4)
    monkeypatch.setattr(cards, "settings_of", lambda folder: dict(precision="bf16"))
    assert on_this_card(big, tmp_path).training.precision == "bf16"


def test_what_the_user_sets_stays():
    big, t4 = PRESETS["wmt14-big"], CARDS["t4"]
    assert on_card(big, t4, {"accumulate"}).training.batch_tokens == big.training.batch_tokens
    assert on_card(big, t4, {"precision"}).training.precision == "bf16"
    tiny = replace(t4, memory=10**9)
    kept = on_card(big, tiny, {"checkpoint_activations"}).training
    assert not kept.checkpoint_activations
    for name in ("smoke", "multi30k-tiny", "multi30k-recurrent"):
        assert on_card(PRESETS[name], t4) is PRESETS[name]


@pytest.mark.parametrize("major, precision", [(7, "fp16"), (9, "bf16")])
def test_the_card_of_a_machine_is_recognised(monkeypatch, major, precision):
    assert this_card() is None  # without a GPU
    found = SimpleNamespace(name="Some card", total_memory=10**10, major=major)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: found)
    monkeypatch.setattr(cards, "missing_for_compiling", lambda kind: "a C compiler")
    assert this_card() == Card("Some card", 10**10, precision, compiler=False)


def test_a_card_is_described_and_a_preset_that_does_not_fit_says_so():
    first, second = describe_card(PRESETS["wmt14-base"], CARDS["t4"])
    assert first == "card: T4, 16 GB; 25,000 tokens x 1, bf16, compiled"
    assert re.fullmatch(r"on this card: about \S+ GB of its memory; estimated", second)
    assert len(describe_card(PRESETS["multi30k-recurrent"], CARDS["t4"])) == 1
    tiny = replace(CARDS["t4"], memory=10**9)
    *_, last = describe_card(on_card(PRESETS["wmt14-big"], tiny), tiny)
    found = r"warning: this does not fit: it needs about \S+ GB, .* 850 MB of the 1.0 GB"
    assert re.fullmatch(found, last)
