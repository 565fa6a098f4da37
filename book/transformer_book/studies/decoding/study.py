"""The results of wider beams on a whole test set, as a record for the pages."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from transformer.recipes.record import read_record
from transformer.saving.files import write_atomically

#: The translations of the shipped weights under all searches.
RECORD = Path(__file__).parent / "beams.json"


@dataclass(frozen=True)
class BeamStudy:
    """The translations of a test set by one model under many searches.

    The methods take the beam size of a search, then optionally the exponent and the formula of
    the length penalty ("gnmt" or "fairseq"), and the stopping rule: "safe" as in
    :func:`~transformer.inference.decoding.beam_search`, "full" once ``beam_size`` translations
    have ended, "leading" once an ending is the most probable of all continuations. The beam size
    "exact" selects the most probable translation of all, or the best of the widest beam where no
    translation was proven to be that. A search that was not recorded raises KeyError.
    """

    record: dict[str, Any]

    def steps(self, *search: str | int | float) -> float:
        """Return the mean number of decoding steps per sentence."""
        return self.record["steps"][search_name(*search)]

    @property
    def references(self) -> Float[np.ndarray, " sentences"]:
        """Log-probability of each reference under the model."""
        return np.array(self.record["reference"])

    @property
    def empty(self) -> Float[np.ndarray, " sentences"]:
        """Log-probability of the empty translation of each sentence."""
        return np.array(self.record["empty"])

    def __len__(self) -> int:
        return len(self.record["sentences"])

    def searches(self) -> list[str]:
        """Return the names of all searches, such as "4 0.6 gnmt safe"."""
        return list(self.record["choices"])

    def translations(self, *search: str | int | float) -> list[str]:
        """Return the text of each translation, in the order of the test set."""
        return [text for text, _, _ in self._chosen(search)]

    def lengths(self, *search: str | int | float) -> Int[np.ndarray, " sentences"]:
        """Return the number of tokens of each translation, including EOS."""
        return np.array([n for _, n, _ in self._chosen(search)])

    def log_probabilities(self, *search: str | int | float) -> Float[np.ndarray, " sentences"]:
        """Return the log-probability of each translation."""
        return np.array([total for _, _, total in self._chosen(search)])

    def proven(self) -> Bool[np.ndarray, " sentences"]:
        """Return for which sentences "exact" is proven to be the most probable translation."""
        return np.array(self.record["proven"], dtype=bool)

    def _chosen(self, search: tuple[str | int | float, ...]) -> list[Any]:
        choice = self.record["choices"][search_name(*search)]
        return [s[place] for s, place in zip(self.record["sentences"], choice, strict=True)]


def search_name(
    beam_size: str | int | float,
    alpha: str | int | float = 0.0,
    penalty: str | int | float = "gnmt",
    stop: str | int | float = "safe",
) -> str:
    """Name a search, such as "4 0.6 gnmt safe"; see :class:`BeamStudy`."""
    return f"{beam_size} {float(alpha)} {penalty} {stop}"


def write_study(path: Path | str, record: dict[str, Any]) -> Path:
    """Write a study, one line per part; the same study makes the same file."""
    parts = [
        f"{json.dumps(name)}: {json.dumps(part, ensure_ascii=False, separators=(',', ':'))}"
        for name, part in record.items()
    ]
    text = "{\n" + ",\n".join(parts) + "\n}\n"
    write_atomically(Path(path), lambda p: p.write_text(text, encoding="utf-8"))
    return Path(path)


def recorded_study(path: Path | str = RECORD) -> BeamStudy:
    """Read a recorded study; by default that of the shipped weights on their test set."""
    return BeamStudy(read_record(path))
