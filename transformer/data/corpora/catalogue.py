"""List the corpora: licence, origin, and whether the files are on this machine."""

from dataclasses import dataclass
from pathlib import Path

from transformer.data.corpora import FAMILIES, corpus_names
from transformer.data.corpora.local import EMBEDDED, cache_directory, find_file


@dataclass(frozen=True)
class CorpusEntry:
    """A corpus for :func:`~transformer.data.corpora.load_corpus`, described in words.

    ``at_hand`` says whether all its files are on this machine.
    """

    name: str
    languages: str
    licence: str
    origin: str
    at_hand: bool


def corpus_catalogue(data_dir: Path | str | None = None) -> list[CorpusEntry]:
    """Describe every corpus of ``load_corpus``, without reading or downloading it."""
    return [_entry(name, data_dir) for name in corpus_names()]


def _entry(name: str, data_dir: Path | str | None) -> CorpusEntry:
    start, source, target = name.rsplit("-", 2)
    family, other = FAMILIES[start], target if source == "en" else source
    places = [(Path(folder), file) for folder, file in family.files(other)]
    in_package = all(
        (EMBEDDED / folder / file).is_file() or (EMBEDDED / file).is_file()
        for folder, file in places
    )
    at_hand = all(
        find_file(file, str(folder), data_dir) is not None
        or (cache_directory() / folder / file).is_file()
        for folder, file in places
    )
    origin = "part of the package" if in_package else family.origin
    return CorpusEntry(name, f"{source} -> {target}", family.licence, origin, at_hand)
