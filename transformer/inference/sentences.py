"""From text to what a model translates: sentences, their case, and token ids."""

import re
from collections.abc import Sequence
from typing import Any

from transformer.data.extras import import_extra
from transformer.data.model_tokenizers import TokenizerLike

# Shorter ones are usually abbreviations: "USA", "OK".
_FEWEST_CAPITALS = 4


def split_into_sentences(text: str, language: str) -> list[str]:
    """Split a text into its sentences, with the rules of the library `sentencex`."""
    found = [sentence.strip() for sentence in import_sentencex().segment(language, text)]
    return [sentence for sentence in found if sentence]


def import_sentencex() -> Any:
    """Import the library that splits sentences, or raise an error that says how to install it."""
    return import_extra("split_sentences", "sentences", "sentencex")


def in_capitals(text: str) -> bool:
    """Return whether a text has four letters or more, all of them capitals."""
    letters = [character for character in text if character.isalpha()]
    return len(letters) >= _FEWEST_CAPITALS and all(letter.isupper() for letter in letters)


def to_sentence_case(text: str, language: str) -> str:
    """Lower-case a text, except its first letter and, in English, the word "I"."""
    small = text.lower()
    if language == "en":
        small = re.sub(r"\bi\b", "I", small)
    first = next((i for i, character in enumerate(small) if character.isalpha()), 0)
    return small[:first] + small[first : first + 1].upper() + small[first + 1 :]


def encode_sentences(
    texts: Sequence[str],
    names: Sequence[str],
    tokenizer: TokenizerLike,
    longest: int | None = None,
) -> list[list[int]]:
    """Return the ids of sentences without EOS, encoded together; each run of spaces counts as one.

    Errors call each sentence by its name, such as "texts[3]". ``longest`` is the most tokens that
    the model takes, including EOS.
    """
    pairs = zip(texts, names, strict=True)
    spaced = [" ".join(require_text(text, name).split()) for text, name in pairs]
    try:
        rows = tokenizer.encode_batch(spaced)
    except ValueError:  # say which one
        for text, name in zip(spaced, names, strict=True):
            try:
                tokenizer.encode(text)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        raise
    for text, name, ids in zip(spaced, names, rows, strict=True):
        if longest is not None and len(ids) >= longest:
            raise ValueError(
                f"{name} has {len(ids) + 1} tokens, more than the {longest} that the model takes: "
                f"{text[:30]!r}..."
            )
    return rows


def require_text(text: object, name: str) -> str:
    """Return a text, or raise TypeError if it is not a string."""
    if not isinstance(text, str):
        raise TypeError(f"{name} must be text, got {type(text).__name__}")
    return text
