"""Common statements about the Transformer: what is true, and which chapter shows it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Literal

import yaml

from transformer_book.tables import Table, html_table

Verdict = Literal["wrong", "half true", "true of something else"]

_DATA: dict[str, Any] = yaml.safe_load(
    Path(__file__).with_suffix(".yml").read_text(encoding="utf-8")
)

#: The notebook of each chapter that a statement refers to, by its number.
CHAPTERS = {name[:2]: name for name in _DATA["notebooks"]}


@dataclass(frozen=True)
class Myth:
    """A common statement about the Transformer."""

    theme: str  #: its group in the table.
    said: str  #: the statement.
    #: "wrong"; "half true", which needs a condition; or "true of something else", of another part,
    #: model or text than the one it is said about.
    verdict: Verdict
    truth: str  #: the correct statement, in a sentence.
    #: numbers of the chapters that explain more, such as "07"; the one with the evidence comes
    #: first.
    chapters: tuple[str, ...]
    #: words from the evidence, found in the first chapter that is named. A statement with an
    #: experiment of its own has none.
    shown: str = ""
    #: heading of its experiment in the chapter on such statements, if it has one.
    question: str = ""

    def __post_init__(self) -> None:
        if bool(self.shown) == bool(self.question):
            raise ValueError(f"{self.said!r} must have either evidence or an experiment")
        if self.question and not re.fullmatch(r"[A-Z][a-z]*( [A-Za-z]+)*\?", self.question):
            raise ValueError(f"question must be plain words and a mark, got {self.question!r}")

    @property
    def anchor(self) -> str:
        """Anchor of its experiment, without the hash; empty if it has none."""
        return self.question.lower().replace(" ", "-").rstrip("?")


#: By theme; those with a question in the order of the chapter.
MYTHS = tuple(
    Myth(theme, **row | dict(chapters=tuple(row["chapters"])))
    for theme, rows in _DATA["statements"].items()
    for row in rows
)


class Overview(Table):
    """All statements: verdict, truth, and links to the evidence; each theme folds away."""

    def __init__(self, myths: Iterable[Myth] = MYTHS):
        self.myths = tuple(myths)
        header = ["statement", "verdict", "what is true", "where"]
        rows = [
            (m.said, m.verdict, m.truth, ", ".join(_page(n)[0] for n in m.chapters))
            for m in self.myths
        ]
        super().__init__(header, rows)

    def _repr_html_(self) -> str:
        parts = []
        for theme in dict.fromkeys(m.theme for m in self.myths):
            group = [m for m in self.myths if m.theme == theme]
            rows = [(escape(m.said), m.verdict, escape(m.truth), _where(m)) for m in group]
            inside = html_table(self.header, rows)
            parts.append(
                f'<details class="statements"><summary><strong>{theme}</strong> '
                f"({len(group)})</summary>{inside}</details>"
            )
        return "".join(parts)


class Quiz(Table):
    """The statements that have an experiment, each with a verdict that opens at a click."""

    def __init__(self, myths: Iterable[Myth] = MYTHS):
        self.myths = [m for m in myths if m.question]
        super().__init__(["statement", "verdict"], [(m.said, m.verdict) for m in self.myths])

    def _repr_html_(self) -> str:
        rows = [
            (
                escape(m.said),
                "<details><summary>your guess?</summary>"
                f'<strong>{m.verdict}</strong>: <a href="#{m.anchor}">see why</a></details>',
            )
            for m in self.myths
        ]
        return html_table(self.header, rows)


def _page(number: str) -> tuple[str, str]:
    """Return the number of a chapter without a leading zero, and its page in the built book."""
    return str(int(number)), f"{CHAPTERS[number]}.html"


def _where(myth: Myth) -> str:
    """Write the links of a statement: to its experiment, and to the chapters."""
    links = ['<a href="{1}">{0}</a>'.format(*_page(n)) for n in myth.chapters]
    if myth.question:
        links.insert(0, f'<a href="#{myth.anchor}">here</a>')
    return ", ".join(links)
