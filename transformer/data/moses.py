"""Lower-cased text in Moses tokens, the form of the published scores on Multi30K.

Separating punctuation and discarding case makes a small corpus easier. BLEU on such text must not
be compared with BLEU on plain text.

Paper: section 6.1 (its scores are on tokenised text, too)
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

from transformer.data.parallel import Corpus, Split

TextForm = Literal["plain", "moses-lowercase"]


def in_form(corpus: Corpus, form: str) -> Corpus:
    """Convert a corpus of plain text to one of the forms of ``TextForm``.

    Raises:
        ValueError: If ``form`` is unknown.
        ModuleNotFoundError: If `sacremoses` is needed and not installed.
    """
    if form not in get_args(TextForm):
        raise ValueError(f"text must be one of {', '.join(get_args(TextForm))}, got {form!r}")
    return moses_lowercased(corpus) if form == "moses-lowercase" else corpus


def moses_lowercased(corpus: Corpus) -> Corpus:
    """Lower-case every sentence of a corpus and separate its Moses tokens by spaces.

    Raises:
        ModuleNotFoundError: If `sacremoses` is not installed.
    """

    def convert(texts: list[str], language: str) -> list[str]:
        return moses_tokens([text.lower() for text in texts], language)

    splits = {
        name: Split(
            convert(split.source, corpus.source_language),
            convert(split.target, corpus.target_language),
        )
        for name, split in corpus.splits.items()
    }
    return replace(corpus, splits=splits)


def moses_tokens(texts: Sequence[str], language: str) -> list[str]:
    """Separate the Moses tokens of each text by spaces, without escaping.

    The language code selects the list of abbreviations.

    Raises:
        ModuleNotFoundError: If `sacremoses` is not installed.
    """
    try:
        from sacremoses import MosesTokenizer
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "Moses tokens need the package sacremoses: pip install 'transformer-book[moses]'",
            name=error.name,
        ) from None
    tokenizer = MosesTokenizer(language)
    return [tokenizer.tokenize(text, return_str=True, escape=False) for text in texts]
