"""The departures ledger: its prose is written on the page, its measurements come from the record.

A cell that ``<!-- choice NAME -->`` opens and ``<!-- end -->`` closes holds what the choice of that
name measured, and is written anew from the record.
"""

from collections.abc import Mapping

from transformer.lab.recipe.choices import Effect

_CHAPTER = "../notebooks/21_left_out.ipynb"


def describe_effect(effect: Effect) -> str:
    """Say in a few words what a choice changed.

    Args:
        effect: against base, seed by seed.

    Returns:
        The mean gain in nats a token with its range over the seeds, that in BLEU, and the verdict
        with a link to the chapter.
    """

    def spread(gains: tuple[float, ...], digits: int, unit: str) -> str:
        mean, low, high = (
            f"{number:+.{digits}f}" for number in (sum(gains) / len(gains), min(gains), max(gains))
        )
        return f"{mean} {unit} ({low} to {high})"

    gains = f"{spread(effect.nats, 2, 'nats')}, {spread(effect.bleu, 1, 'BLEU')}"
    return f"{gains}: [{effect.verdict}]({_CHAPTER})"


def measurements(effects: Mapping[str, Effect]) -> dict[str, str]:
    """What the page says of each choice, by its name.

    Args:
        effects: by the names that the markers of kind "choice" use.
    """
    return {name: describe_effect(effect) for name, effect in effects.items()}
