"""What a step costs is counted as by hand, and estimates agree with records."""

import pytest
import torch
from torch import nn

from transformer.recipes import cards
from transformer.recipes.architectures import count_parameters
from transformer.recipes.cards import CARDS, on_card
from transformer.recipes.estimate import training_bytes
from transformer.recipes.presets import get_preset
from transformer.recipes.record import read_record
from transformer_book.speed import throughput
from transformer_book.speed.comparison import summarise
from transformer_book.speed.roofline import counting
from transformer_book.studies.recording import same_recipe


def test_ratios_are_computed_within_a_round():
    rows = summarise({"a": [10.0, 100.0, 30.0], "b": [10.0, 50.0, 10.0]})
    assert rows[1] == dict(name="b", median=10.0, ratio=2.0, least=1.0, most=3.0)


@pytest.mark.parametrize(
    "path", sorted(throughput.MEASUREMENTS.glob("*.json")), ids=lambda p: p.stem
)
def test_the_estimate_of_a_card_agrees_with_the_recorded_speed(path):
    record = read_record(path)
    (card,) = (card for name, card in CARDS.items() if name in record["device"].lower())
    preset = on_card(get_preset(record["preset"]["name"]), card)
    assert same_recipe(record, preset)
    assert cards.step_seconds(preset, card) == pytest.approx(record["seconds_per_step"], rel=0.1)
    assert record["peak_memory_bytes"] == pytest.approx(
        training_bytes(preset.model, preset.training, count_parameters(preset.model)), rel=0.25
    )


def test_a_linear_layer_and_a_norm():
    model, x = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16)), torch.randn(4, 8)
    with counting("cpu") as counter:
        model(x).sum().backward()
    assert counter.product_flops == 2 * 2 * 4 * 8 * 16  # the output, the gradient of the weight
    rows, statistics, weights = 4 * 16 * 4, 2 * 4 * 4, 2 * 16 * 4
    norm = rows + weights + rows + statistics
    total, ones = rows + 4, 4
    gradient = 4 + rows + statistics + weights + rows + weights
    bias = rows + 16 * 4
    assert counter.other_bytes == norm + total + ones + gradient + bias
    assert counter.kernels == 5 + 2  # the two products as well
