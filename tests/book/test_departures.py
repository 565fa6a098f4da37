"""The ledger's measurements are those of the record, and no choice is left out of it."""

from pathlib import Path

from transformer.book.departures import describe_effect, measurements
from transformer.book.markers import fill_in, marked
from transformer.lab.recipe.choices import CHOICES, Effect, recorded_effects

PAGE = Path(__file__).parents[2] / "book" / "departures.md"

WORSE = Effect("glorot-init", (-0.5, -0.7), (-2.0, -4.0), 100, 0.1)


def test_the_page_holds_what_the_record_says():
    page = PAGE.read_text(encoding="utf-8")
    assert fill_in(page, "choice", measurements(recorded_effects())) == page


def test_every_choice_that_the_paper_leaves_open_stands_in_the_ledger():
    is_open = {name for name, choice in CHOICES.items() if choice.group == "open"} - {"base"}
    assert set(marked(PAGE.read_text(encoding="utf-8"), "choice")) == is_open


def test_a_description_gives_mean_range_and_seeds():
    text = describe_effect(WORSE)
    assert text == (
        "-0.60 nats (-0.70 to -0.50), -3.0 BLEU (-4.0 to -2.0): "
        "[worse](../notebooks/21_left_out.ipynb)"
    )
    level = Effect("x", (-0.1, 0.2), (0.0, 0.0), 1, 0.3)
    assert describe_effect(level).startswith("+0.05 nats (-0.10 to +0.20), +0.0 BLEU")
    assert "[no clear difference](" in describe_effect(level)
