"""Which learning rate suits each parser: short runs that write tags, scored on validation."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from transformer_book.studies.parsing import study

RECORD = Path(__file__).parent / "rates.json"
#: Factors of the schedule; the runs of the chapter have 0.4.
FACTORS, STEPS = (0.1, 0.2, 0.4, 0.8, 1.6), 1000
# The recurrent network's other rates were not recorded.
WANTED = {"transformer": FACTORS, "recurrent": (0.1, 0.4)}
HEADING: dict[str, Any] = dict(factors=list(FACTORS), steps=STEPS, search="greedy", seed=1)


def missing(runs: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    """Train what the record lacks, and score it on all validation sentences."""
    done = {(run["architecture"], run["factor"]) for run in runs}
    wanted = [
        (name, f) for name, factors in WANTED.items() for f in factors if (name, f) not in done
    ]
    if not wanted:
        return
    text = study.parsing_text(tags=True)
    for architecture, factor in sorted(wanted):
        recipe = study.RECIPES[architecture, "tags"]
        training = replace(
            recipe.training,
            max_steps=STEPS,
            validate_every=STEPS,
            save_every=50,
            learning_rate_factor=factor,
        )
        one = replace(recipe, training=training)
        with TemporaryDirectory() as folder:
            model, trainer = study.train_parser(one, text, folder)
        lines = study.outputs_of(model, text.vocabulary, text.validation, study.SEARCHES["greedy"])
        found = study.scores_of(text.validation, lines)
        run: dict[str, Any] = dict(architecture=architecture, factor=factor)
        run |= dict(f1=found["f1"], malformed=found["malformed"], minutes=trainer.seconds / 60)
        yield run, f"{architecture}, factor {factor}: F1 {found['f1']:.1f}"
