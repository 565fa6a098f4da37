"""All exercises of the book on one page, by part and by difficulty.

Title, question and kind of answer are read from the chapters. Only the difficulty is written here,
a judgement by hand.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from transformer.book.tables import Table

Level = Literal["easy", "medium", "hard"]
Kind = Literal["function", "number", "prediction", "open end"]

_OF_LETTER: Mapping[str, Level] = {"e": "easy", "m": "medium", "h": "hard"}

#: A letter an exercise, in the chapter's order; easy, medium or hard.
LEVELS: Mapping[str, str] = {
    "01": "emmm",
    "02": "ememh",
    "03": "emem",
    "04": "ehmeh",
    "05": "mmmhm",
    "06": "eemmm",
    "07": "eemh",
    "08": "emmhe",
    "09": "eemmm",
    "10": "eeemh",
    "11": "emhm",
    "12": "eemmm",
    "13": "emhmm",
    "14": "mhme",
    "15": "hmmm",
    "16": "ehmme",
    "17": "emem",
    "18": "mmmh",
    "19": "mhe",
    "20": "eeemh",
    "21": "eemmh",
    "22": "memh",
    "23": "meem",
    "24": "memh",
}


@dataclass(frozen=True)
class Exercise:
    """An exercise as its chapter states it.

    Args:
        chapter: its two digits.
        number: from 1.
        title: without its number.
        question: the text up to the sentence that asks.
        kind: what the reader gives: a function, a number, a prediction; or there is no check.
    """

    chapter: str
    number: int
    title: str
    question: str
    kind: Kind

    @property
    def level(self) -> Level:
        """How hard it is.

        Raises:
            LookupError: if nobody has said so.
        """
        letters = LEVELS.get(self.chapter, "")
        if self.number > len(letters):
            raise LookupError(f"exercise {self.number} of chapter {self.chapter} has no level")
        return _OF_LETTER[letters[self.number - 1]]


_HEAD = re.compile(r"^\*\*(\d+)\. (.+?)\*\*(.*?)(?=^\*\*\d+\. |\Z)", re.M | re.S)
# A sentence's end, which "Eq." is not.
_END = re.compile(r"(?<=[.?!])(?<!Eq\.)\s+(?=[A-Z*`$(\"])")
# Sentences that ask, the surest sign first.
_ASKS = (
    re.compile(r"\**(Write|Compute|Predict|Judge)\b"),
    re.compile(r".*\?$"),
    re.compile(r"(Give|Make|Turn|Change|Train|Cut|Rank|Use|Set|Do|Return|Put)\b"),
)


def exercises_of(notebook: Path) -> list[Exercise]:
    """Read the exercises of a chapter.

    Args:
        notebook: a chapter, whose exercises stand under the heading "Exercises"; each begins with
            its number and title in bold letters.

    Returns:
        In the chapter's order; none if there is no such heading.

    Raises:
        FileNotFoundError: if there is no such notebook.
    """
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
            _kind(match[0], codes),
        )
        for match, codes in found
    ]


def _asked(title: str, text: str, room: int = 280) -> str:
    """What is to be done: the text up to the sentence that asks, if there is room for it."""
    # A title without a full stop is the beginning of the first sentence.
    whole = text if title[-1] in ".?" else title + text
    paragraph = " ".join(whole.strip().split("\n\n")[0].split())
    paragraph = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)  # links lead from elsewhere
    sentences = _END.split(paragraph)
    asking = (i for sign in _ASKS for i, said in enumerate(sentences) if sign.match(said))
    asks = next(asking, 0)
    upto = " ".join(sentences[: asks + 1])
    return upto if len(upto) <= room else sentences[asks]


def _kind(text: str, codes: Sequence[str]) -> Kind:
    code = "\n".join(codes)
    if "no check" in text or "open end" in text or "check" not in code:
        return "open end"
    if "# your code" in code or "return ..." in code:
        return "function"
    return "prediction" if re.search(r"\.\.\.\s*#.*(string|True|truth)", code) else "number"


def render_exercises(parts: Mapping[str, Sequence[Path]]) -> str:
    """Write the page of all exercises.

    Args:
        parts: the chapters of each part of the book, by its title.

    Raises:
        LookupError: if an exercise has no level.
    """
    sections, total = [], {"easy": 0, "medium": 0, "hard": 0}
    for part, paths in parts.items():
        sections.append(f"## {part}\n")
        exercises = [(path, exercise) for path in paths for exercise in exercises_of(path)]
        for level in total:
            rows = [_row(path, each) for path, each in exercises if each.level == level]
            total[level] += len(rows)
            if rows:
                table = Table(["Exercise", "Question", "You give"], rows).markdown()
                sections.append(f"### {part}: {level}\n\n{table}")
    return _PAGE.format(number=sum(total.values()), tables="\n".join(sections), **total)


_GIVEN = {
    "function": "code",
    "number": "a number",
    "prediction": "a prediction",
    "open end": "your own experiment",
}


def _row(path: Path, exercise: Exercise) -> tuple[str, str, str]:
    label = f"{int(exercise.chapter)}.{exercise.number}"
    link = f"[{label} {exercise.title}](../notebooks/{path.name}#exercises)"
    return link, exercise.question, _GIVEN[exercise.kind]


_PAGE = """# All exercises, by topic and difficulty

The chapters end with {number} exercises: {easy} easy, {medium} medium, {hard} hard. A link leads to
the exercises of a chapter, where each stands with an empty cell for your answer, a check that says
what is wrong, and a solution that is folded away.

**How to read it.** *Easy*: one thought, or a line or two, with the chapter fresh in mind. *Medium*:
a few lines, or a calculation with a trap. *Hard*: several steps, or an idea that the chapter does
not spell out. The level is the author's judgement. Those marked *your own experiment* have no
check, since nobody knows your result.

{tables}
The page is generated: `python tools/make_exercises.py`.
"""
