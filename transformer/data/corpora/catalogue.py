"""List the corpora: licence, origin, and whether the files are on this machine."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from transformer.data.corpora import corpus_names, mixture, multi30k, tatoeba, wmt
from transformer.data.corpora.local import cache_directory, find_file


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
    """Describe every corpus, without reading or downloading it.

    ``data_dir`` is that of :func:`~transformer.data.corpora.load_corpus`.
    """
    return [_entry(name, data_dir) for name in corpus_names()]


def _entry(name: str, data_dir: Path | str | None) -> CorpusEntry:
    family, source, target = name.rsplit("-", 2)
    other = target if source == "en" else source
    licence, origin = {
        "tatoeba": (tatoeba.LICENCE, "part of the package" if other == "de" else "data directory"),
        "multi30k": (multi30k.LICENCE, "download"),
        "wmt14": (wmt.LICENCE, "download by the extra [wmt]"),
        "wmt-newstest": (wmt.LICENCE, "data directory"),
        "mixture": (mixture.LICENCE, "tatoeba, multi30k and wmt-newstest"),
    }[family]
    at_hand = all(
        find_file(file, folder, data_dir) is not None
        or (cache_directory() / folder / file).is_file()
        for folder, file in _files(family, other)
    )
    return CorpusEntry(name, f"{source} -> {target}", licence, origin, at_hand)


def _files(family: str, other: str) -> list[tuple[str, str]]:
    """Return folder and name of every file of a corpus of English with another language."""
    if family == "mixture":
        parts = [
            pair for part in ("tatoeba", "multi30k", "wmt-newstest") for pair in _files(part, other)
        ]
        return parts + _sides("wmt-newstest", mixture.TRAINING_NEWS, other)
    if family == "tatoeba":
        return [(f"tatoeba-en-{other}", file) for file in tatoeba.FILES[other]]
    if family == "multi30k":
        files = multi30k.SPLITS.values()
        return [(multi30k.FOLDER, f"{file}.{side}.gz") for file in files for side in ("en", other)]
    stems = list(wmt.WMT14_FILES.values())
    return _sides(family, stems if family == "wmt14" else stems[1:], other)


def _sides(family: str, stems: Iterable[str], other: str) -> list[tuple[str, str]]:
    return [
        (f"{family}-en-{other}", f"{stem}.en-{other}.{side}.gz")
        for stem in stems
        for side in ("en", other)
    ]
