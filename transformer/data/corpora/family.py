"""What a module of this folder says of its corpora: how to load them, and their files."""

from collections.abc import Callable
from dataclasses import dataclass

from transformer.data.parallel import Split


@dataclass(frozen=True)
class Family:
    """Corpora of one origin, each of English with another language."""

    #: Called with the other language and the data directory; returns splits with English as the
    #: source: ``train``, ``validation`` and others.
    load: Callable[..., dict[str, Split]]
    licence: str  #: in a few words
    origin: str  #: where files come from that are not in the package, in a few words
    #: Called with the other language; returns folder and name of each file.
    files: Callable[[str], list[tuple[str, str]]]
    languages: tuple[str, ...] = ("de", "fr")  #: the other ones
