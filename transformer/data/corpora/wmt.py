"""WMT: the paper's training data, and the news test sets.

WMT14 is downloaded by Hugging Face `datasets`, an optional extra. The texts belong to their
publishers and are intended for research, so the package does not include them.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from transformer.data.corpora.download import DownloadError
from transformer.data.corpora.family import Family
from transformer.data.corpora.local import find_file, how_to_provide, require_file
from transformer.data.parallel import (
    Split,
    StreamedSplit,
    kept_pairs,
    load_parallel_files,
    stream_parallel_files,
)

LICENCE = "for research; the texts belong to their publishers; https://www.statmt.org/wmt14/"

# A fixed state of huggingface.co/datasets/wmt/wmt14, so that scores are comparable.
_REVISION = "b199e406369ec1b7634206d3ded5ba45de2fe696"

#: Our split names -> the part of the file names in a data directory.
WMT14_FILES = {"train": "train", "validation": "newstest2013", "test": "newstest2014"}

NEWS_SETS = ("news-test2008", "newssyscomb2009") + tuple(f"newstest{y}" for y in range(2009, 2019))


def load_wmt14(language: str, data_dir: Path | str | None = None) -> dict[str, Split]:
    """Load ``train``, ``validation`` and ``test`` of WMT14 English to German or French.

    They have 4.5 or 41 million, 3,000 and 3,003 pairs. The training text stays on disk; see
    :class:`~transformer.data.parallel.StreamedSplit`. If ``wmt14-en-de/train.en-de.en`` (or
    ``.gz``) is in the data directory, so must be newstest2013 and newstest2014; otherwise
    `datasets` downloads all.

    Raises:
        DownloadError: if the data are not on this machine and cannot be downloaded.
        ValueError: if `datasets` is needed and not installed, or a file is damaged.

    Paper: section 5.1
    """
    folder = f"wmt14-en-{language}"
    if find_file(f"train.en-{language}.en.gz", folder, data_dir) is not None:
        return {
            name: _load_files(stem, language, folder, data_dir, in_memory=name != "train")
            for name, stem in WMT14_FILES.items()
        }
    try:
        from datasets import load_dataset  # optional: imported only where it is needed
    except ImportError:
        raise ValueError(
            f"{folder} needs the extra package datasets: pip install 'transformer-book[wmt]'; "
            f"or, for each file, {how_to_provide(folder)}"
        ) from None
    try:
        dataset = load_dataset("wmt/wmt14", f"{language}-en", revision=_REVISION)
    except Exception as error:  # several libraries' own classes of network errors
        reason = " ".join(str(error).split())
        raise DownloadError(
            f"cannot download {folder}: {reason}; or, for each file, {how_to_provide(folder)}"
        ) from None
    return {name: _from_rows(dataset[name], language, name) for name in WMT14_FILES}


def load_newstest(language: str, data_dir: Path | str | None = None) -> dict[str, Split]:
    """Load the WMT news test sets in the data directory, for evaluation only.

    They are ``validation`` (newstest2013), ``test`` (newstest2014), and every set by its own name:
    of German 2008 to 2018, of French 2008 to 2014.

    Raises:
        FileNotFoundError: if newstest2013 or newstest2014 is missing.

    Paper: section 6.1
    """
    folder = f"wmt-newstest-en-{language}"
    sets = {
        name: _load_files(name, language, folder, data_dir)
        for name in NEWS_SETS
        if name in WMT14_FILES.values()
        or find_file(f"{name}.en-{language}.en.gz", folder, data_dir) is not None
    }
    return {"validation": sets["newstest2013"], "test": sets["newstest2014"]} | sets


def _load_files(
    stem: str, language: str, folder: str, data_dir: Path | str | None, in_memory: bool = True
) -> Split:
    source, target = (
        require_file(f"{stem}.en-{language}.{side}.gz", folder, data_dir)
        for side in ("en", language)
    )
    return (load_parallel_files if in_memory else stream_parallel_files)(source, target)


def _from_rows(rows: Any, language: str, name: str) -> StreamedSplit:
    """Stream rows, which `datasets` memory-maps from disk."""

    def read() -> Iterator[tuple[str, str]]:
        for chunk in rows.iter(batch_size=10_000):
            yield from ((pair["en"], pair[language]) for pair in chunk["translation"])

    origin = f"wmt14-en-{language} {name}"
    given: set[str] = set()
    return StreamedSplit(
        lambda: kept_pairs(read(), origin, given=given), f"{origin}, revision {_REVISION}"
    )


def files(corpus: str, stems: Iterable[str], language: str) -> list[tuple[str, str]]:
    """Return folder and name of the files of some texts ("newstest2014") of a corpus ("wmt14")."""
    folder, pair = f"{corpus}-en-{language}", f"en-{language}"
    return [(folder, f"{stem}.{pair}.{side}.gz") for stem in stems for side in ("en", language)]


WMT14 = Family(
    load_wmt14,
    LICENCE,
    "download by the extra [wmt]",
    partial(files, "wmt14", WMT14_FILES.values()),
)
NEWSTEST = Family(
    load_newstest,
    LICENCE,
    "data directory",
    partial(files, "wmt-newstest", ("newstest2013", "newstest2014")),
)
