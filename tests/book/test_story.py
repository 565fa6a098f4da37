"""What a chapter tells before its exercises: short, without intervals, and mostly code to type."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDED = {"hide-cell", "hide-input", "remove-input", "remove-cell"}
# The chapters that build the program; the toy's rules in the first are folded and long.
CHAPTERS = [
    path
    for path in sorted((ROOT / "notebooks").glob("*.ipynb"))
    if path.stem < "12" or path.stem in {"17_decoding", "20_table_3"}
]
INTERVAL = re.compile(r"[-−+]?\d[\d.,]*%? to [-−+]?\d[\d.,]*%|95 ?%|\binterval")


def story(path):
    """The words before the exercises, and the lines of code that are shown and folded."""
    words, lines = [], {True: 0, False: 0}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            shown = not FOLDED & {*cell["metadata"].get("tags", [])}
            lines[shown] += sum(bool(line.strip()) for line in source.splitlines())
        else:
            before = re.split(r"^#+ (?:Exercises|Lab notes|References)", source, flags=re.M)
            words.append(before[0])
            if len(before) > 1:
                break
    plain = re.sub(r"^\|.*$|`[^`]*`|\$[^$]*\$|\]\([^)]*\)", "", "\n".join(words), flags=re.M)
    return plain, lines[True], lines[False]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_the_story_is_short_and_proves_nothing(path):
    text, shown, folded = story(path)
    assert len(text.split()) <= (1350 if path.stem > "01" else 1500)
    assert not (found := INTERVAL.findall(text)), found
    if path.stem > "01":
        assert shown / (shown + folded) >= 0.55


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_the_evidence_is_one_fold_away(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    markdown = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    (notes,) = (i for i, text in enumerate(markdown) if text.startswith("## Lab notes"))
    exercises = next(i for i, text in enumerate(markdown) if "## Exercises" in text)
    assert exercises < notes and "<details>" in markdown[notes]
