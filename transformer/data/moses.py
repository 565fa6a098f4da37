"""Lower-cased text in Moses tokens, the form of the published scores on Multi30K.

Separating punctuation and discarding case makes a small corpus easier. BLEU on such text must not
be compared with BLEU on plain text.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import Literal, get_args

from transformer.data.extras import import_extra
from transformer.data.parallel import Corpus, Split, StreamedSplit

TextForm = Literal["plain", "moses-lowercase"]


def in_form(corpus: Corpus, form: str) -> Corpus:
    """Convert a corpus of plain text to one of the forms of ``TextForm``.

    Raises:
        ValueError: if ``form`` is unknown, or for Moses tokens the language of a side.
        ModuleNotFoundError: if `sacremoses` is needed and not installed.
    """
    if form not in get_args(TextForm):
        raise ValueError(f"text must be one of {', '.join(get_args(TextForm))}, got {form!r}")
    return moses_lowercased(corpus) if form == "moses-lowercase" else corpus


def moses_lowercased(corpus: Corpus) -> Corpus:
    """Lower-case every sentence of a corpus and separate its Moses tokens by spaces.

    A split that stays on disk is converted anew each time that it is read.
    """
    languages = corpus.source_language, corpus.target_language
    for language in languages:
        if not re.fullmatch("[a-z]{2,3}([-_][a-z0-9]+)*", language, re.IGNORECASE):
            raise ValueError(
                f"Moses tokens depend on the language, and {language!r} is not a language code; "
                f"set source_language and target_language to codes such as 'en' and 'de' "
                f"(transformer train takes them from file names such as text.en)"
            )
    source, target = map(_separator, languages)

    def convert(split: Split) -> Split:
        def read() -> Iterator[tuple[str, str]]:
            return ((source(a.lower()), target(b.lower())) for a, b in split)

        if isinstance(split, StreamedSplit):
            how = f"{', '.join(languages)} by sacremoses {version('sacremoses')}, in lower case"
            return StreamedSplit(read, f"{split.identity}, {how}")
        return Split.of(read())

    return replace(corpus, splits={name: convert(s) for name, s in corpus.splits.items()})


def moses_tokens(texts: Sequence[str], language: str) -> list[str]:
    """Separate the Moses tokens of each text by spaces, without escaping.

    The language code selects the list of abbreviations; `sacremoses` must be installed.
    """
    return [*map(_separator(language), texts)]


def _separator(language: str) -> Callable[[str], str]:
    moses = import_extra("Moses text", "moses", "sacremoses")
    return partial(moses.MosesTokenizer(language).tokenize, return_str=True, escape=False)
