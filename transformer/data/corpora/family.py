"""What a module of this folder says of its corpora: how to load them, and their files."""

from collections.abc import Callable
from dataclasses import dataclass

from transformer.data.parallel import Split


@dataclass(frozen=True)
class Family:
    """Corpora of one origin, each of English with another language.

    Args:
        load: called with the other language and the data directory; returns splits with English as
            the source: ``train``, ``validation`` and others.
        licence: in a few words.
        origin: where files come from that are not in the package, in a few words.
        files: called with the other language; returns folder and name of each file.
        languages: the other languages.
    """

    load: Callable[..., dict[str, Split]]
    licence: str
    origin: str
    files: Callable[[str], list[tuple[str, str]]]
    languages: tuple[str, ...] = ("de", "fr")
