"""Translate text line by line as it arrives, for use in a pipe."""

from collections.abc import Iterable, Iterator
from typing import Any

from transformer.inference.translator import Translator

#: Longest accepted line, in bytes, far beyond the sentences that a model takes.
LONGEST_LINE = 1 << 26


def read_lines(file: Any, name: str = "standard input") -> Iterator[str]:
    r"""Read lines of UTF-8 from a binary file and strip their line ends.

    Args:
        file: opened in binary mode; only ``\n`` ends a line.
        name: of the file in error messages.

    Raises:
        ValueError: if a line is longer than ``LONGEST_LINE`` or not UTF-8, after those before it
            are yielded.
    """
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise ValueError(f"{name}, line {number}: more than {LONGEST_LINE:,} bytes")
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            byte = line[error.start]
            raise ValueError(
                f"{name} is not UTF-8: line {number} holds the byte 0x{byte:02x}"
            ) from None


def translate_lines(
    translator: Translator, lines: Iterable[str], at_once: int = 64, **options: Any
) -> Iterator[str]:
    """Translate lines in portions and yield exactly one line per input line.

    Args:
        translator: the model and its tokenizer.
        lines: sentences; a blank one gives an empty line.
        at_once: number of lines to collect before they are translated, at least 1.
        options: of :meth:`~transformer.inference.translator.Translator.translate`.

    Raises:
        ValueError: if a line is longer than the model takes or cannot be read, after those before
            it are yielded; or if an option is out of range.
    """
    if at_once < 1:
        raise ValueError(f"at_once must be at least 1, got {at_once}")
    portion: list[str] = []
    try:
        for number, line in enumerate(lines, 1):
            translator.require_translatable(line, f"line {number}")
            portion.append(line)
            if len(portion) == at_once:
                ready, portion = portion, []
                yield from _translated(translator, ready, options)
    except ValueError:
        yield from _translated(translator, portion, options)
        raise
    yield from _translated(translator, portion, options)


def _translated(
    translator: Translator, portion: list[str], options: dict[str, Any]
) -> Iterator[str]:
    for translation in translator.translate(portion, **options):
        # A model may produce any character. Remove every line end that str.splitlines recognises,
        # such as a carriage return or U+2028.
        yield " ".join(translation.splitlines())
