"""What there is to train on: each corpus, whose it is, and whether it is on this machine.

Nothing is read and nothing is downloaded to answer that.
"""

from dataclasses import dataclass
from pathlib import Path

from transformer.data import multi30k, tatoeba, wmt
from transformer.data.corpora import corpus_names
from transformer.data.local import cache_directory, find_file


@dataclass(frozen=True)
class CorpusEntry:
    """A corpus that :func:`~transformer.data.corpora.load_corpus` knows.

    Args:
        name: Such as ``tatoeba-en-de``.
        languages: Such as ``en -> de``.
        licence: Licence and attribution, in words.
        origin: Where its files come from.
        at_hand: Whether all of them are on this machine.

    Paper: section 5.1
    """

    name: str
    languages: str
    licence: str
    origin: str
    at_hand: bool


def corpus_catalogue(data_dir: Path | str | None = None) -> list[CorpusEntry]:
    """Describe every corpus.

    Args:
        data_dir: Directory of the user's own files; None for the one that the environment
            variable ``TRANSFORMER_DATA_DIR`` names, if any.

    Raises:
        FileNotFoundError: If the data directory does not exist.

    Paper: section 5.1
    """
    return [_entry(name, data_dir) for name in corpus_names()]


def _entry(name: str, data_dir: Path | str | None) -> CorpusEntry:
    family, source, target = name.rsplit("-", 2)
    other = target if source == "en" else source
    folder, cache = f"{family}-en-{other}", None
    if family == "tatoeba":
        licence, files = tatoeba.LICENCE, list(tatoeba.FILES[other])
        origin = "part of the package" if other == "de" else "data directory"
    elif family == "multi30k":
        licence, folder, origin = multi30k.LICENCE, multi30k.FOLDER, "download"
        cache = cache_directory() / folder
        files = [f"{stem}.{side}.gz" for stem in multi30k.SPLITS.values() for side in ("en", other)]
    else:
        stems = list(wmt.WMT14_FILES.values())
        if family == "wmt14":
            licence, origin = wmt.LICENCE, "download by the extra [wmt]"
        else:
            licence, origin, stems = wmt.LICENCE, "data directory", stems[1:]
        files = [f"{stem}.en-{other}.{side}.gz" for stem in stems for side in ("en", other)]
    at_hand = all(
        find_file(file, folder, data_dir) is not None or (cache and (cache / file).is_file())
        for file in files
    )
    return CorpusEntry(name, f"{source} -> {target}", licence, origin, at_hand)
