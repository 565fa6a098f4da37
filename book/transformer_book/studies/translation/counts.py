"""N-gram counts of the recorded translations, from which scores can be bootstrapped.

    python -m transformer_book.studies.translation.counts --data-dir DIR

Counts are stored beside the record, because not every corpus may be passed on: a chapter computes
intervals from them without the references. Only runs that have no counts yet are counted.
"""

import argparse
import io
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from transformer.data.corpora import load_corpus
from transformer.data.moses import in_form
from transformer.inference.significance import (
    CorpusScore,
    bleu_of_counts,
    character_counts,
    chrf_of_counts,
    sentence_counts,
)
from transformer.recipes.record import read_record, read_translations
from transformer.saving.files import write_atomically
from transformer_book.studies.translation.recorded import RUNS

# Counts, a row per sentence, by test split and metric, such as "test BLEU" and "test chrF2".
Counts = dict[str, np.ndarray]

#: The score that is computed from the counts of a metric.
SCORES: dict[str, CorpusScore] = {"BLEU": bleu_of_counts, "chrF2": chrf_of_counts}


def count_run(
    record: Mapping[str, Any],
    translations: Mapping[str, list[str]],
    data_dir: Path | str | None = None,
) -> Counts:
    """Count the n-grams of a run's translations, in the form of text in which it was scored."""
    preset = record["preset"]
    form = preset.get("text", "plain")
    corpus = in_form(load_corpus(record["corpus"]["name"], data_dir), form)
    counts: Counts = {}
    for split, hypotheses in translations.items():
        references = corpus.splits[split].target[: preset["test_pairs"]]
        tokenize = "13a" if form == "plain" else "none"
        counts[f"{split} BLEU"] = sentence_counts(hypotheses, references, tokenize)
        counts[f"{split} chrF2"] = character_counts(hypotheses, references)
    return counts


def write_counts(path: Path, counts: Counts) -> None:
    """Write counts as a file of NumPy, packed tighter than NumPy does."""

    def write(place: Path) -> None:
        with zipfile.ZipFile(place, "w") as archive:
            for name, table in counts.items():
                np.save(packed := io.BytesIO(), table.astype(np.uint16))
                entry = zipfile.ZipInfo(f"{name}.npy")
                archive.writestr(entry, packed.getvalue(), zipfile.ZIP_LZMA)

    write_atomically(path, write)


def read_counts(name: str, folder: Path | str = RUNS) -> Counts:
    """Read the counts of a recorded run; empty if it has none.

    The package has only the counts that chapter 18 reads.
    """
    path = Path(folder) / f"{name}.counts.npz"
    if not path.exists():
        if folder == RUNS and not (RUNS / f"{name}.translations.json.gz").exists():
            raise FileNotFoundError(f"{path.name} is only in a checkout of the repository")
        return {}
    with np.load(path) as file:
        return {key: file[key].astype(np.int64) for key in file.files}


def count_missing(names: Iterable[str], data_dir: Path | None, folder: Path = RUNS) -> None:
    """Count the translations of those runs that have none counted."""
    for name in names:
        target, texts = folder / f"{name}.counts.npz", folder / f"{name}.translations.json.gz"
        if target.exists() or not texts.exists():
            continue
        record = read_record(folder / f"{name}.json")
        write_counts(target, count_run(record, read_translations(texts), data_dir))
        print(f"{name}: counted")


def main() -> None:
    """Count what is missing."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--data-dir", type=Path, help="folder of your copies of corpus files")
    names = [path.stem for path in sorted(RUNS.glob("*.json"))]
    count_missing(names, options.parse_args().data_dir)


if __name__ == "__main__":
    main()
