"""What a step costs is counted as by hand, and estimates agree with records."""

import pytest

from transformer.recipes.architectures import count_parameters
from transformer.recipes.cards import CARDS, on_card
from transformer.recipes.estimate import training_bytes
from transformer.recipes.presets import get_preset
from transformer.recipes.record import read_record
from transformer_book.speed import throughput
from transformer_book.speed.comparison import summarise
from transformer_book.studies.recording import same_recipe


def test_ratios_are_computed_within_a_round():
    rows = summarise({"a": [10.0, 100.0, 30.0], "b": [10.0, 50.0, 10.0]})
    assert rows[1] == dict(name="b", median=10.0, ratio=2.0, least=1.0, most=3.0)


def test_the_memory_rule_agrees_with_the_record():
    (path,) = throughput.MEASUREMENTS.glob("*.json")
    record = read_record(path)
    (card,) = (card for name, card in CARDS.items() if name in record["device"].lower())
    preset = on_card(get_preset(record["preset"]["name"]), card)
    assert same_recipe(record, preset)
    assert record["peak_memory_bytes"] == pytest.approx(
        training_bytes(preset.model, preset.training, count_parameters(preset.model)), rel=0.25
    )
