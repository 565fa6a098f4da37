"""Parallel corpora by name, such as ``load_corpus("tatoeba-en-de")``.

Every corpus is available in both directions. ``tatoeba-en-de`` and ``tatoeba-de-en`` are part of
the package and need no network.
"""

from difflib import get_close_matches
from pathlib import Path

from transformer.data.corpora import mixture, multi30k, tatoeba, wmt
from transformer.data.corpora.family import Family
from transformer.data.parallel import (
    Corpus,
    Split,
    load_parallel_files,
    stream_parallel_files,
)
from transformer.data.splits import split_by_component

__all__ = [
    "Corpus",
    "Split",
    "corpus_from_files",
    "corpus_names",
    "load_corpus",
    "load_parallel_files",
]

#: Families of corpora by the first part of the name.
FAMILIES: dict[str, Family] = {
    "tatoeba": tatoeba.FAMILY,
    "multi30k": multi30k.FAMILY,
    "wmt14": wmt.WMT14,
    "wmt-newstest": wmt.NEWSTEST,
    "mixture": mixture.FAMILY,
}


def corpus_names() -> list[str]:
    """Return the names that :func:`load_corpus` accepts."""
    return [
        f"{name}-{direction}"
        for name, family in FAMILIES.items()
        for other in family.languages
        for direction in (f"en-{other}", f"{other}-en")
    ]


def load_corpus(name: str, data_dir: Path | str | None = None) -> Corpus:
    """Load a corpus by name.

    Args:
        name: one of :func:`corpus_names`: a family and two languages.
        data_dir: directory of the user's own files, searched first; None for the value of the
            environment variable ``TRANSFORMER_DATA_DIR``, if any. Each file is searched in the
            folder of its corpus (``tatoeba-en-fr``, ``multi30k-task1``, ``wmt14-en-de``, ...), then
            in the directory itself. A mixture takes its files from the folders of its parts.

    Raises:
        ValueError: if there is no such corpus, or a file of it is damaged.
        FileNotFoundError: if a file is not on this machine and cannot be downloaded.

    Paper: section 5.1
    """
    if name not in corpus_names():
        close = get_close_matches(name, corpus_names(), n=1, cutoff=0.0)[0]
        raise ValueError(
            f"unknown corpus {name!r}; did you mean {close!r}? known: {', '.join(corpus_names())}"
        )
    start, source, target = name.rsplit("-", 2)
    family = FAMILIES[start]
    splits = family.load(target if source == "en" else source, data_dir)
    if target == "en":
        splits = {split_name: split.swapped() for split_name, split in splits.items()}
    return Corpus(name, source, target, family.licence, splits)


def corpus_from_files(
    train: tuple[Path | str, Path | str],
    validation: tuple[Path | str, Path | str] | None = None,
    test: tuple[Path | str, Path | str] | None = None,
    source_language: str = "source",
    target_language: str = "target",
    max_words: int | None = 1000,
) -> Corpus:
    """Make a corpus from aligned text files, named after the source file for training.

    Args:
        train: source file and target file of the training text. If validation files are given, it
            stays on disk and may be larger than the memory.
        validation: the same for validation. If None, 5% of the training pairs, at most 2,000,
            are held out; they share no sentence with the rest.
        test: the same for a test split; None for no test split.
        source_language: language code, such as ``en``.
        target_language: that of the target.
        max_words: see :func:`~transformer.data.parallel.load_parallel_files`.

    Raises:
        TypeError: if ``train``, ``validation`` or ``test`` is not a pair of files.
        FileNotFoundError: if a file is missing.
        ValueError: if a file cannot be used, or there are too few pairs to hold some out.
    """
    given = dict(train=train, validation=validation, test=test)
    for name, pair in given.items():
        if pair is not None and (isinstance(pair, str | Path) or len(pair) != 2):
            raise TypeError(f"{name} must be a source file and a target file, got {pair!r}")
    if validation is None:
        pairs = load_parallel_files(*train, max_words)
        size = min(2000, max(1, len(pairs) // 20))
        splits = split_by_component(pairs, validation_size=size, test_size=0)
    else:
        splits = {
            "train": stream_parallel_files(*train, max_words),
            "validation": load_parallel_files(*validation, max_words),
        }
    if test is not None:
        splits["test"] = load_parallel_files(*test, max_words)
    files = {name: (str(pair[0]), str(pair[1])) for name, pair in given.items() if pair}
    name, licence = Path(train[0]).name, "of the user's own files"
    return Corpus(name, source_language, target_language, licence, splits, files)
