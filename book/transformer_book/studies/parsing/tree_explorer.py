"""A stepper that builds a tree from the brackets of a parser, one piece at a time."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from transformer.data.corpora.treebank import Tree
from transformer_book.palette import COLOURS, INK
from transformer_book.studies.parsing.bracketing import compare
from transformer_book.studies.parsing.linearised_trees import from_brackets
from transformer_book.widgets.base import Explorer

# What a piece does: its name, and how many phrases it closes or words it places.
Event = tuple[str, int]


class TreeExplorer(Explorer):
    """A stepper through outputs of a parser: the brackets, the open phrases, the tree so far."""

    kind = "tree-explorer"
    size = (6.4, 4.4)
    parts = ("stepper.js", "stepper.css")

    def __init__(self, examples: Sequence[tuple[str, Tree, Sequence[str]]], step: int = 0):
        self.examples, self.step = list(examples), step
        said = []
        for title, gold, pieces in self.examples:
            parse = from_brackets(pieces, gold.words())
            f1 = compare(gold, parse.tree).f1
            faults = ", ".join(parse.faults) or "a tree"
            said.append(f"{title}: “{' '.join(gold.words())}”, {faults}, F1 {f1:.0f}%.")
        self.alt = (
            "Outputs of a parser, turned into trees piece by piece: an opening bracket opens a "
            "phrase, XX or a tag takes the next word, a closing bracket closes the phrase. "
            + " ".join(said)
        )

    def payload(self) -> dict[str, Any]:
        """Collect words, pieces and what each piece does."""
        found = []
        for title, gold, pieces in self.examples:
            words = gold.words()
            parse = from_brackets(pieces, words)
            right = compare(gold, parse.tree)
            found.append(
                dict(
                    title=title,
                    words=words,
                    pieces=list(pieces),
                    events=events(pieces, len(words)),
                    gold=[list(phrase) for phrase in gold.phrases()],
                    faults=list(parse.faults),
                    f1=round(right.f1),
                    counts=[right.matched, right.gold, right.predicted],
                )
            )
        return {"title": "From brackets to a tree", "examples": found, "step": self.step}

    def draw(self, figure: Figure) -> None:
        """Draw the phrases of the first example as bars below its words; dashed ones are wrong."""
        _, gold, pieces = self.examples[0]
        phrases = from_brackets(pieces, gold.words()).tree.phrases()
        axes, right = figure.subplots(), gold.phrases()
        for place, word in enumerate(gold.words()):
            axes.text(place + 0.5, 0.2, word, rotation=32, color=INK)
        for row, (label, start, end) in enumerate(phrases, 1):
            style = "-" if (label, start, end) in right else "--"
            axes.plot([start + 0.1, end - 0.1], [-row, -row], style, color=COLOURS["purple"])
            axes.text(start, -row, label, ha="right", va="center", color=INK)
        axes.set(xlim=(-0.9, len(gold.words()) + 0.4), ylim=(-len(phrases) - 0.5, 2))
        axes.axis("off")


def events(pieces: Sequence[str], words: int) -> list[Event]:
    """Say what each piece of an output does, and at the end how many words are missing."""
    open_phrases: list[str] = []
    found: list[Event] = []
    used = 0
    for piece in pieces:
        if not piece.startswith(("(", ")")):
            found.append(("word", 1) if used < words else ("skip", 0))
            used += used < words
        elif piece.startswith("("):
            open_phrases.append(piece[1:])
            found.append(("open", 0))
        elif piece[1:] in open_phrases:
            count = open_phrases[::-1].index(piece[1:]) + 1
            del open_phrases[-count:]
            found.append(("close", count))
        else:
            found.append(("skip", 0))
    return [*found, ("end", words - used)]
