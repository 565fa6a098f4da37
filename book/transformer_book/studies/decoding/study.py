"""The shipped model's translations of held-out sentences with many beams."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from transformer.inference.batches import pad
from transformer.inference.decoding import beam_search, greedy_search
from transformer.inference.translator import Translator
from transformer.recipes.record import read_record
from transformer.saving.files import write_atomically
from transformer_book.studies.recording import Recording, shipped

RECORD = Path(__file__).parent / "record.json"
BEAMS = (1, 2, 4, 8, 16)
#: Beam sizes and exponents of the length penalty, by split; a beam of 1 is greedy search.
SEARCHES: dict[str, list[tuple[int, float]]] = {
    "test": [(1, 0.0), *((size, alpha) for size in BEAMS[1:] for alpha in (0.0, 0.6))],
    "validation": [(1, 0.0), (4, 0.6)],
}


@dataclass(frozen=True)
class BeamStudy:
    """What each search chose; the methods raise KeyError for a search that was not recorded."""

    record: dict[str, Any]

    def translations(self, size: int, alpha: float = 0.0, split: str = "test") -> list[str]:
        """Return the text of each translation, in the order of the split."""
        return [text for text, _, _ in self._chosen(size, alpha, split)]

    def lengths(self, size: int, alpha: float = 0.0) -> Int[np.ndarray, " sentences"]:
        """Return the number of tokens of each translation, including EOS."""
        return np.array([n for _, n, _ in self._chosen(size, alpha, "test")])

    def log_probabilities(self, size: int, alpha: float = 0.0) -> Float[np.ndarray, " sentences"]:
        """Return the log-probability of each translation."""
        return np.array([total for _, _, total in self._chosen(size, alpha, "test")])

    def _chosen(self, size: int, alpha: float, split: str) -> list[Any]:
        part = self.record["splits"][split]
        choice = part["choices"][f"{size} {float(alpha)}"]
        return [found[place] for found, place in zip(part["found"], choice, strict=True)]


def recorded_study() -> BeamStudy:
    """Read the recorded searches."""
    return BeamStudy(read_record(RECORD))


def heading() -> dict[str, Any]:
    """Return the model and the corpus in the record."""
    return shipped()[-1]


def fill(recording: Recording) -> None:
    """Add the searches that the record lacks."""
    translator, corpus, _ = shipped()
    for split, searches in SEARCHES.items():
        source = corpus.splits[split].source
        empty: dict[str, Any] = dict(found=[[] for _ in source], choices={})
        part = recording.content.setdefault("splits", {}).setdefault(split, empty)
        for size, alpha in searches:
            if (name := f"{size} {alpha}") in part["choices"]:
                continue
            choice = part["choices"][name] = []
            for known, new in zip(
                part["found"], search_all(translator, source, size, alpha), strict=True
            ):
                if new not in known:
                    known.append(new)
                choice.append(known.index(new))
            recording.save(f"{split}, beam {size}, alpha {alpha}")


def search_all(
    translator: Translator, texts: list[str], size: int, alpha: float
) -> list[list[Any]]:
    """Translate; return text, tokens with EOS and log-probability of each."""
    tokenizer, model = translator.tokenizer, translator.model
    ids = [[*tokenizer.encode(text), tokenizer.eos_id] for text in texts]
    order, at_once = sorted(range(len(ids)), key=lambda i: len(ids[i])), max(10, 1600 // size)
    results: list[list[Any]] = [[] for _ in ids]
    for rows in (order[start : start + at_once] for start in range(0, len(order), at_once)):
        source = pad(model, [ids[i] for i in rows])
        best = (
            greedy_search(model, source) if size == 1 else beam_search(model, source, size, alpha)
        )
        for i, one in zip(rows, best, strict=True):
            text = tokenizer.decode(one.tokens).strip()
            results[i] = [text, len(one.tokens) + one.finished, round(one.log_probability, 3)]
    return results


def write_study(path: Path | str, record: dict[str, Any]) -> Path:
    """Write the record with a part per line."""
    parts = [
        f"{json.dumps(name)}: {json.dumps(part, ensure_ascii=False, separators=(',', ':'))}"
        for name, part in record.items()
    ]
    text = "{\n" + ",\n".join(parts) + "\n}\n"
    write_atomically(Path(path), lambda p: p.write_text(text, encoding="utf-8"))
    return Path(path)
