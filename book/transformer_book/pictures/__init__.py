"""Pictures of mechanisms: modules draw numbers of a model; other drawings are files, with words."""

import json
from pathlib import Path

from transformer_book.drawing import Shown

_FILES = Path(__file__).parent / "svg"

# The sentence that runs through the book; its words; and its tokens in the shipped model.
SENTENCE = "The animal didn't cross the street because it was too tired."
WORDS = (*SENTENCE.removesuffix(".").split(), ".")
TOKENS = ("The", "animal", "didn", "'t", *WORDS[3:], "<eos>")
# A correct translation of it, with spaces between its tokens.
REFERENCE = "Das Tier hat die Straße nicht überquert , weil es zu müde war ."


def picture(name: str) -> Shown:
    """Return a picture that was drawn by hand. Write it as the last line of a cell."""
    descriptions = json.loads((_FILES / "descriptions.json").read_text(encoding="utf-8"))
    if name not in descriptions:
        raise ValueError(f"name must be one of {', '.join(descriptions)}, got {name!r}")
    files = _FILES / f"{name}.svg", _FILES / f"{name}.narrow.svg"
    return Shown(descriptions[name], *(file.read_text(encoding="utf-8").strip() for file in files))
