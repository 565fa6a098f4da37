"""Lower-cased text in Moses tokens: what published scores on Multi30K were computed on.

Cutting words from punctuation and throwing case away makes a small corpus easier, and BLEU on such
text is another number than BLEU on plain text: compare either with its own kind only.

Paper: section 6.1 (its own scores are on tokenised text too)
"""

from collections.abc import Sequence
from typing import Literal, get_args

from transformer.data.parallel import Corpus, Split

TextForm = Literal["plain", "moses-lowercase"]


def in_form(corpus: Corpus, form: str) -> Corpus:
    """Bring a corpus into the form that a model is trained and scored on.

    Args:
        corpus: plain text.
        form: one of ``TextForm``: "plain" leaves it as it is, "moses-lowercase" calls
            :func:`moses_lowercased`.

    Raises:
        ValueError: If ``form`` is neither.
        ModuleNotFoundError: If `sacremoses` is needed and not installed.

    Paper: section 6.1 (its scores, too, are on tokenised text)
    """
    if form not in get_args(TextForm):
        raise ValueError(f"text must be one of {', '.join(get_args(TextForm))}, got {form!r}")
    return moses_lowercased(corpus) if form == "moses-lowercase" else corpus


def moses_lowercased(corpus: Corpus) -> Corpus:
    """Lower-case every sentence of a corpus and put blanks around its Moses tokens.

    Args:
        corpus: plain text. Its language codes choose the tokeniser's lists of abbreviations.

    Returns:
        A corpus of the same name and splits. A sentence without any character but blanks stays
        empty.

    Raises:
        ModuleNotFoundError: If `sacremoses` is not installed.
    """
    splits = {
        name: Split(
            _lowercased_tokens(split.source, corpus.source_language),
            _lowercased_tokens(split.target, corpus.target_language),
        )
        for name, split in corpus.splits.items()
    }
    return Corpus(
        corpus.name, corpus.source_language, corpus.target_language, corpus.licence, splits
    )


def moses_tokens(texts: Sequence[str], language: str) -> list[str]:
    """Put blanks around the Moses tokens of each text.

    Args:
        texts: plain text, in any case.
        language: code of their language; it chooses the list of abbreviations.

    Returns:
        As many texts. Nothing is escaped: "&apos;" for an apostrophe would be a habit of Moses'
        phrase tables only.

    Raises:
        ModuleNotFoundError: If `sacremoses` is not installed.

    Paper: section 6.1 (its own scores are on tokenised text)
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


def _lowercased_tokens(texts: list[str], language: str) -> list[str]:
    return moses_tokens([text.lower() for text in texts], language)
