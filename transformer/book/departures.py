"""The departures ledger: its prose is written on the page, its measurements come from the record.

A cell that ``<!-- choice NAME -->`` opens and ``<!-- end -->`` closes holds what the choice of that
name measured, and is written anew from the record.

Paper: not in the paper: where the package differs from it
"""

import re
from collections.abc import Mapping

from transformer.experiments.choices import Effect

_CELL = re.compile(r"<!-- choice ([\w-]+) -->.*?<!-- end -->", re.DOTALL)

_CHAPTER = "../notebooks/21_left_out.ipynb"


def describe_effect(effect: Effect) -> str:
    """Say in a few words what a choice changed.

    Args:
        effect: against base, seed by seed.

    Returns:
        The mean gain in nats a token with its range over the seeds, that in BLEU, and the verdict
        with a link to the chapter.

    Paper: not in the paper
    """

    def spread(gains: tuple[float, ...], digits: int, unit: str) -> str:
        mean, low, high = (
            f"{number:+.{digits}f}" for number in (sum(gains) / len(gains), min(gains), max(gains))
        )
        return f"{mean} {unit} ({low} to {high})"

    gains = f"{spread(effect.nats, 2, 'nats')}, {spread(effect.bleu, 1, 'BLEU')}"
    return f"{gains}: [{effect.verdict}]({_CHAPTER})"


def fill_in(page: str, effects: Mapping[str, Effect]) -> str:
    """Write the measurements into the page, whatever stood there.

    Args:
        page: in Markdown, with its markers.
        effects: by the names that the markers use.

    Returns:
        The page; filling it in again changes nothing.

    Raises:
        ValueError: if a marker names no recorded choice.

    Paper: not in the paper
    """

    def cell(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in effects:
            raise ValueError(f"no recorded choice {name!r}; recorded are {', '.join(effects)}")
        return f"<!-- choice {name} -->{describe_effect(effects[name])}<!-- end -->"

    return _CELL.sub(cell, page)


def marked(page: str) -> list[str]:
    """List the choices that a page gives the measurement of, in its order.

    Args:
        page: in Markdown.

    Paper: not in the paper
    """
    return _CELL.findall(page)
