"""Translate text line by line as it arrives, for use in a pipe."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, Unpack

from transformer.data.lines import decode_lines
from transformer.inference.options import SearchOptions
from transformer.inference.results import Translation
from transformer.inference.translator import TranslateKeywords, Translator

#: Longest accepted line, in bytes, far beyond the sentences that a model takes.
LONGEST_LINE = 1 << 26


def read_lines(file: Any, name: str = "standard input") -> Iterator[str]:
    r"""Read lines of UTF-8 from a file opened in binary mode, without their ends.

    Only ``\n`` and ``\r\n`` end a line. A byte-order mark at the beginning is left out. ValueError
    names ``name`` if a line is longer than ``LONGEST_LINE`` or not UTF-8, after those before it.
    """
    return decode_lines(_lines(file, name), name)


def _lines(file: Any, name: str) -> Iterator[bytes]:
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise ValueError(f"{name}, line {number}: more than {LONGEST_LINE:,} bytes")
        yield line


class LineKeywords(TranslateKeywords, total=False):
    """The options of :meth:`~transformer.inference.translator.Translator.translate`."""

    n_best: int | None
    return_scores: bool


def translate_lines(
    translator: Translator,
    lines: Iterable[str],
    at_once: int = 64,
    options: SearchOptions | None = None,
    **keywords: Unpack[LineKeywords],
) -> Iterator[Any]:
    """Translate lines in portions and yield exactly one result per input line.

    Args:
        translator: the model and its tokenizer.
        lines: sentences; a blank one gives an empty line.
        at_once: number of lines to collect before they are translated, at least 1.
        options: of the search.
        keywords: of :meth:`~transformer.inference.translator.Translator.translate`.

    Yields:
        What ``translate`` gives for a line. No text contains a line break.

    Raises:
        ValueError: if a line is longer than the model takes or cannot be read, after those before
            it are yielded; or if an option is out of range.
    """
    if at_once < 1:
        raise ValueError(f"at_once must be at least 1, got {at_once}")
    remaining, number, end = iter(lines), 1, False
    while not end:
        portion: list[str] = []
        unreadable = None
        try:
            portion.extend(islice(remaining, at_once))
        except ValueError as error:
            unreadable = error
        end = len(portion) < at_once
        yield from _translated(translator, portion, number, options, keywords)
        if unreadable is not None:
            raise unreadable
        number += len(portion)


def _translated(
    translator: Translator,
    portion: list[str],
    number: int,
    options: SearchOptions | None,
    keywords: LineKeywords,
) -> Iterator[Any]:
    """Translate lines from ``number`` on, up to the first that cannot be translated."""
    try:
        found = translator.translate(portion, options=options, **keywords)
    except ValueError:
        split, case = keywords.get("split_sentences", False), keywords.get("sentence_case", True)
        for i, line in enumerate(portion):
            try:
                translator.require_translatable(line, f"line {number + i}", split, case)
            except ValueError:
                yield from _translated(translator, portion[:i], number, options, keywords)
                raise
        raise
    yield from map(_one_line, found)


def _one_line(found: Any) -> Any:
    """Remove every line end that str.splitlines recognises, such as a carriage return or U+2028."""
    if isinstance(found, list):
        return [_one_line(each) for each in found]
    if isinstance(found, Translation):
        return replace(found, text=_one_line(found.text))
    return " ".join(found.splitlines())  # a model may produce any character
