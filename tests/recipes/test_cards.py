"""Presets on cards: the step stays, its batches fit the memory, estimates come from counts."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from transformer.model.config import TransformerConfig
from transformer.recipes import cards
from transformer.recipes.architectures import build_model
from transformer.recipes.cards import (
    CARDS,
    describe_card,
    on_card,
    on_card_in,
    on_this_card,
    step_seconds,
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


@pytest.mark.parametrize(
    "name, gigabytes, capability, known, precision",
    [
        ("Tesla T4", 15.8, 7, "t4", "fp16"),
        ("NVIDIA H200", 150, 9, "h200", "bf16"),
        ("NVIDIA H100 80GB HBM3", 85, 9, "h100", "bf16"),
        ("NVIDIA A100-SXM4-80GB", 85, 8, "a100", "bf16"),
        ("NVIDIA GeForce RTX 4090", 25.3, 8, "24gb", "bf16"),
        ("NVIDIA L4", 23.6, 8, "24gb", "bf16"),
        ("Tesla V100-SXM2-32GB", 34, 7, "24gb", "fp16"),
        ("Some card of tomorrow", 300, 12, "h200", "bf16"),
        ("GeForce GTX 1080", 8.5, 6, "t4", "fp16"),
    ],
)
def test_the_card_of_a_machine_is_recognised(
    monkeypatch, name, gigabytes, capability, known, precision
):
    found = SimpleNamespace(name=name, total_memory=int(gigabytes * 1e9), major=capability)
    assert this_card() is None  # without a GPU
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: found)
    monkeypatch.setattr(cards, "missing_for_compiling", lambda kind: None)
    card = this_card()
    assert (card.title, card.memory, card.precision) == (name, int(gigabytes * 1e9), precision)
    assert card.flops == CARDS[known].flops and card.compiler
    monkeypatch.setattr(cards, "missing_for_compiling", lambda kind: "a C compiler")
    assert not this_card().compiler


def test_the_estimate_follows_from_counts_and_says_so():
    base, h100 = PRESETS["wmt14-base"], CARDS["h100"]
    seconds = step_seconds(base, h100)
    # Products alone, at the whole rate of the data sheet, take at least this.
    assert seconds > 9e12 / h100.flops
    faster = replace(h100, flops=2 * h100.flops, bandwidth=2 * h100.bandwidth)
    assert step_seconds(base, replace(faster)) == pytest.approx(
        max(cards.HOST, seconds / 2), rel=1e-9
    )
    split = base.with_changes(batch_tokens=12_500, accumulate=2)
    assert step_seconds(split, CARDS["t4"]) == pytest.approx(step_seconds(base, CARDS["t4"]))
    recomputed = base.with_changes(checkpoint_activations=True)
    assert step_seconds(recomputed, CARDS["t4"]) > 1.2 * step_seconds(base, CARDS["t4"])
    # The model is compiled, only its loss is, or there is no compiler.
    eager = base.with_changes(compile=False)
    assert seconds < step_seconds(eager, h100) < step_seconds(eager, replace(h100, compiler=False))
    first, _ = describe_card(base, replace(h100, compiler=False))
    assert first.endswith("25,000 tokens x 1, bf16")
    first, second = describe_card(base, CARDS["t4"])
    assert first == "card: T4, 16 GB; 25,000 tokens x 1, bf16, compiled"
    hours = base.training.max_steps * step_seconds(base, CARDS["t4"]) / 3600
    assert f"{hours:.1f} hours" in second and f"${0.35 * hours:,.2f}" in second
    assert second.endswith("per hour; estimated")
    assert len(describe_card(PRESETS["multi30k-recurrent"], h100)) == 1


def test_a_preset_that_does_not_fit_says_so():
    tiny = replace(CARDS["t4"], memory=10**9)
    *_, last = describe_card(on_card(PRESETS["wmt14-big"], tiny), tiny)
    found = r"warning: this does not fit: it needs about \S+ GB, .* 850 MB of the 1.0 GB"
    assert re.fullmatch(found, last)


@pytest.mark.parametrize("name", ["smoke", "tatoeba-small"])
def test_in_float32_no_time_is_estimated_from_the_rates_of_half_precision(name):
    preset = PRESETS[name]
    assert preset.training.precision == "fp32"
    first, second = describe_card(preset, CARDS["h100"])
    assert first.endswith(", fp32")
    assert re.fullmatch(r"on this card: about \S+ [MG]B of its memory; estimated", second)
    with pytest.raises(ValueError, match="precision must be bf16 or fp16"):
        step_seconds(preset, CARDS["h100"])


def test_the_disk_gets_little_per_step():
    """Weights come every ``save_every`` steps, the state every few minutes on the fastest card."""
    fastest = CARDS["h200"]
    for name, preset in PRESETS.items():
        count, training = parameters(preset), preset.training
        per_step = 4 * count / training.save_every
        seconds = 0.01  # of the small ones
        if isinstance(preset.model, TransformerConfig) and training.precision != "fp32":
            seconds = step_seconds(on_card(preset, fastest), fastest)
        assert training.state_minutes is not None
        per_step += 12 * count * seconds / (60 * training.state_minutes)
        assert per_step <= 1.5e6, name
