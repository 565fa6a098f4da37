"""All exercises of the book, by part and difficulty.

Title, question and kind of answer are read from the chapters; the difficulty is a judgement.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from transformer_book.tables import Table

#: The difficulty of each chapter's exercises, in its order.
LEVELS: dict[str, list[str]] = yaml.safe_load(
    (Path(__file__).parents[2] / "exercises.yml").read_text("utf-8")
)

_HEAD = re.compile(r"^\*\*(\d+)\. (.+?)\*\*(.*?)(?=^\*\*\d+\. |\Z)", re.M | re.S)


@dataclass(frozen=True)
class Exercise:
    """An exercise as its chapter states it."""

    chapter: str  #: two digits
    number: int  #: from 1
    title: str  #: without its number
    question: str  #: its first paragraph
    kind: str  #: what the reader gives: "code", "a number" or "a choice"

    @property
    def level(self) -> str:
        """Difficulty: easy, medium or hard."""
        return LEVELS[self.chapter][self.number - 1]


def exercises_of(notebook: Path) -> list[Exercise]:
    """Read the exercises below the heading "Exercises" of a chapter, in its order."""
    found: list[tuple[re.Match[str], list[str]]] = []
    inside = False
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"]) + "\n"
        if cell["cell_type"] == "markdown":
            if not inside:
                inside, text = "## Exercises\n" in text, text.partition("## Exercises\n")[2]
            text, *ended = re.split(r"^## ", text, maxsplit=1, flags=re.M)
            if inside:
                found += [(match, []) for match in _HEAD.finditer(text)]
                if ended:
                    break
        elif found and "solution" not in cell["metadata"].get("tags", []):
            found[-1][1].append(text)
    return [
        Exercise(
            notebook.name[:2],
            int(match[1]),
            match[2].rstrip("."),
            _asked(match[2], match[3]),
            _kind("\n".join(codes)),
        )
        for match, codes in found
    ]


def _asked(title: str, text: str) -> str:
    """Return the first paragraph; a title without a full stop is the beginning of it."""
    whole = text if title[-1] in ".?" else title + text
    paragraph = " ".join(whole.strip().split("\n\n")[0].split())
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)  # relative links would break


def _kind(code: str) -> str:
    if "# your code" in code or "return ..." in code:
        return "code"
    choice = re.search(r"\.\.\.\s*#.*(string|True|truth|name of)", code)
    return "a choice" if choice else "a number"


def texts(root: Path) -> dict[str, str]:
    """Make the texts of the page: the number of exercises, of each level, and the tables."""
    sections, total = [], {"easy": 0, "medium": 0, "hard": 0}
    for part, notebooks in _parts(root).items():
        exercises = [exercise for path in notebooks for exercise in exercises_of(path)]
        for each in exercises:
            total[each.level] += 1
        table = Table(
            ["Exercise", "Question", "Level", "You give"], [_row(each) for each in exercises]
        )
        sections.append(f"## {part}\n\n{table.markdown()}")
    counts = {level: str(count) for level, count in total.items()}
    return counts | {"number": str(sum(total.values())), "exercises": "\n".join(sections)}


def _parts(root: Path) -> dict[str, Sequence[Path]]:
    """The notebooks of each part of the book that has any, by the part's title."""
    contents = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    parts = {
        part.get("caption", "The whole program"): [
            root / f"{chapter['file']}.ipynb"
            for chapter in part["chapters"]
            if chapter["file"].startswith("notebooks/")
        ]
        for part in contents["parts"]
    }
    return {title: notebooks for title, notebooks in parts.items() if notebooks}


def _row(exercise: Exercise) -> tuple[str, str, str, str]:
    label = f"{int(exercise.chapter)}.{exercise.number} {exercise.title}"
    anchor = f"#exercise-{int(exercise.chapter)}-{exercise.number}"
    return f"[{label}]({anchor})", exercise.question, exercise.level, exercise.kind
