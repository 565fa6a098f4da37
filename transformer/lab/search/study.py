"""What a wider beam finds and what it is worth, on a whole test set, as a record for the pages.

Paper: section 6.1
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from transformer.inference.decoding import LengthPenalty
from transformer.recipes.record import read_record
from transformer.training.checkpoint import write_atomically

BeamSize = int | Literal["exact"]
Stop = Literal["safe", "full", "leading"]

#: The translations of the shipped weights under all searches.
RECORD = Path(__file__).parent / "beams.json"


@dataclass(frozen=True)
class BeamStudy:
    """The translations of a test set by one model under many searches.

    A search is named by its beam size, the exponent and the formula of the length penalty, and
    how it ends: "safe" as in :func:`~transformer.inference.decoding.beam_search`, "full" once
    ``beam_size`` translations have ended, "leading" once an ending is the most probable of all
    continuations. The beam size "exact" stands for the most probable translation of all; where
    none was proven to be that, for the best of the widest beam.

    Args:
        record: as ``tools/record_searches.py`` makes it.

    Paper: section 6.1
    """

    record: dict[str, Any]

    def steps(
        self,
        beam_size: int,
        alpha: float | int = 0.0,
        penalty: LengthPenalty = "gnmt",
        stop: Stop = "safe",
    ) -> float:
        """The mean number of steps of a search: how often the model was asked, per sentence.

        Raises:
            KeyError: if there was no such search.

        Paper: section 6.1 (terminate early when possible)
        """
        return self.record["steps"][search_name(beam_size, alpha, penalty, stop)]

    @property
    def references(self) -> Float[np.ndarray, " sentences"]:
        """The log-probability that the model gives to each reference."""
        return np.array(self.record["reference"])

    @property
    def empty(self) -> Float[np.ndarray, " sentences"]:
        """The log-probability that the model gives to saying nothing."""
        return np.array(self.record["empty"])

    def __len__(self) -> int:
        return len(self.record["sentences"])

    def searches(self) -> list[str]:
        """The names of all searches, such as "4 0.6 gnmt safe"."""
        return list(self.record["choices"])

    def translations(
        self,
        beam_size: BeamSize,
        alpha: float | int = 0.0,
        penalty: LengthPenalty = "gnmt",
        stop: Stop = "safe",
    ) -> list[str]:
        """The text of each translation, in the order of the test set.

        Raises:
            KeyError: if there was no such search.

        Paper: section 6.1
        """
        return [text for text, _, _ in self._chosen(beam_size, alpha, penalty, stop)]

    def lengths(
        self,
        beam_size: BeamSize,
        alpha: float | int = 0.0,
        penalty: LengthPenalty = "gnmt",
        stop: Stop = "safe",
    ) -> Int[np.ndarray, " sentences"]:
        """The number of tokens of each translation, EOS counted.

        Raises:
            KeyError: if there was no such search.

        Paper: section 6.1
        """
        return np.array([n for _, n, _ in self._chosen(beam_size, alpha, penalty, stop)])

    def log_probabilities(
        self,
        beam_size: BeamSize,
        alpha: float | int = 0.0,
        penalty: LengthPenalty = "gnmt",
        stop: Stop = "safe",
    ) -> Float[np.ndarray, " sentences"]:
        """The natural logarithm of each translation's probability.

        Raises:
            KeyError: if there was no such search.

        Paper: section 6.1
        """
        return np.array([total for _, _, total in self._chosen(beam_size, alpha, penalty, stop)])

    def proven(self) -> Bool[np.ndarray, " sentences"]:
        """For which sentences "exact" is proven to be the most probable translation of all."""
        return np.array(self.record["proven"], dtype=bool)

    def search_errors(self, beam_size: int) -> Bool[np.ndarray, " sentences"]:
        """Where a beam without length penalty missed a more probable translation that is known."""
        found, best = (self.log_probabilities(size) for size in (beam_size, "exact"))
        return found < best - 1e-4

    def _chosen(
        self, beam_size: BeamSize, alpha: float | int, penalty: str, stop: str
    ) -> list[Any]:
        choice = self.record["choices"][search_name(beam_size, alpha, penalty, stop)]
        return [s[place] for s, place in zip(self.record["sentences"], choice, strict=True)]


def write_study(path: Path | str, record: dict[str, Any]) -> Path:
    """Write a study, a line for each of its parts; the same study makes the same file.

    Raises:
        OSError: if the file cannot be written.
    """
    parts = [
        f"{json.dumps(name)}: {json.dumps(part, ensure_ascii=False, separators=(',', ':'))}"
        for name, part in record.items()
    ]
    text = "{\n" + ",\n".join(parts) + "\n}\n"
    write_atomically(Path(path), lambda p: p.write_text(text, encoding="utf-8"))
    return Path(path)


def recorded_study(path: Path | str = RECORD) -> BeamStudy:
    """Read a recorded study.

    Args:
        path: the record; by default that of the shipped weights on their test set.

    Raises:
        FileNotFoundError: if there is none.
        ValueError: if the file is damaged.
    """
    return BeamStudy(read_record(path))


def search_name(beam_size: BeamSize, alpha: float | int, penalty: str, stop: str) -> str:
    """Name a search, such as "4 0.6 gnmt safe"; see :class:`BeamStudy`."""
    return f"{beam_size} {float(alpha)} {penalty} {stop}"
