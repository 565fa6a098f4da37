"""The departures ledger: its prose is written on the page, its measurements come from the record.

A cell that ``<!-- choice NAME -->`` opens and ``<!-- end -->`` closes holds what the choice of that
name measured, and is written anew from the record.

Paper: not in the paper: where the package differs from it
"""

import re
from collections.abc import Mapping

from transformer.experiments.choices import Effect

_CELL = re.compile(r"<!-- choice ([\w-]+) -->.*?<!-- end -->", re.DOTALL)

_CHAPTER = "[chapter 21](../notebooks/21_left_out.ipynb)"


def describe_effect(effect: Effect) -> str:
    """Say in a few words what a choice changed.

    Args:
        effect: against base, seed by seed.

    Returns:
        The mean gain in nats with its range, that in BLEU, the seeds and the verdict.

    Paper: not in the paper
    """

    def spread(gains: tuple[float, ...], digits: int) -> str:
        mean = sum(gains) / len(gains)
        low, high = min(gains), max(gains)
        return f"{mean:+.{digits}f} ({low:+.{digits}f} to {high:+.{digits}f})"

    verdict = {"better": "Better", "worse": "Worse"}.get(effect.verdict, "No clear difference")
    return (
        f"{verdict} in small: {spread(effect.nats, 2)} nats a token, "
        f"{spread(effect.bleu, 1)} BLEU, {len(effect.nats)} seeds"
    )


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
        return f"<!-- choice {name} -->{describe_effect(effects[name])} ({_CHAPTER})<!-- end -->"

    return _CELL.sub(cell, page)


def marked(page: str) -> list[str]:
    """List the choices that a page gives the measurement of, in its order.

    Args:
        page: in Markdown.

    Paper: not in the paper
    """
    return _CELL.findall(page)
