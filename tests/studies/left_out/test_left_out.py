"""One option per choice, compared with base by seeds."""

import math
from dataclasses import fields

import pytest

from transformer.recipes.record import read_record
from transformer_book.studies.left_out import study as choices


def changed_fields(name):
    mine, base = choices.choice_preset(name), choices.choice_preset("base")
    return {
        field.name: getattr(part, field.name)
        for part, other in ((mine.model, base.model), (mine.training, base.training))
        for field in fields(part)
        if getattr(part, field.name) != getattr(other, field.name)
    }


def test_a_choice_changes_what_it_says_and_nothing_else():
    assert changed_fields("gated") == {"activation": "swiglu", "d_ff": 171}
    assert changed_fields("later-schedule") == {"learning_rate_factor": 0.8, "warmup_steps": 400}
    for name in choices.CHOICES:
        assert len(changed_fields(name)) >= (name != "base"), name


def test_effects_compare_seed_with_seed():
    def run(row, seed, perplexity, bleu=10.0):
        return dict(row=row, seed=seed, perplexity=perplexity, BLEU=bleu, parameters=7)

    runs = [run("base", 1, 10.0), run("base", 2, 20.0, 8.0), run("base", 3, 11.0)]
    runs += [run("gelu", 2, 10.0, 9.5), run("gelu", 1, 5.0, 12.0)]
    (found,) = choices.effects(runs).values()
    assert found.nats == pytest.approx((math.log(2), math.log(2)))
    assert found.bleu == (2.0, 1.5) and found.parameters == 7


@pytest.mark.parametrize(
    "nats, verdict",
    [
        ((0.05, 0.06, 0.05), "better"),
        ((0.02, 0.09, 0.25), "no clear difference"),
        ((0.1, 0.3), "no clear difference"),
    ],
)
def test_a_verdict_needs_an_interval_without_zero(nats, verdict):
    assert choices.Effect("x", nats, (0.0,) * len(nats), 1).verdict == verdict


def test_the_record_is_whole_and_of_the_recipes_that_are_here():
    runs = read_record(choices.RECORD)["runs"]
    first = {(name, seed) for name in choices.CHOICES for seed in choices.SEEDS}
    second = {(name, seed) for name in ("base", *choices.RETESTED) for seed in choices.NEW_SEEDS}
    assert {(entry["row"], entry["seed"]) for entry in runs} == first | second
    for entry in runs:
        recorded = entry["preset"]["model"] | entry["preset"]["training"]
        assert changed_fields(entry["row"]).items() <= recorded.items()
