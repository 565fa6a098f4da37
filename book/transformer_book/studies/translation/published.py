"""Published scores, each with its source and its metric; tables keep the metrics apart."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


@dataclass(frozen=True)
class Metric:
    """One way to compute a score."""

    title: str  #: for the head of a table
    meaning: str  #: how it is computed and what it can be compared with


@dataclass(frozen=True)
class PublishedScore:
    """A published score."""

    system: str
    languages: tuple[str, str]  #: codes of source and target
    test_set: str  #: a name of :func:`~transformer_book.studies.translation.summary.test_set`
    score: float  #: 0 to 100, with the digits that were printed
    metric: str  #: a key of ``METRICS``
    trained_on: str  #: name of the training text
    source: str  #: of the score, in words
    url: str
    key: str | None = None  #: its entry in the bibliography of the book
    architecture: str = "transformer"  #: or "recurrent", "convolutional", "other"
    parameters: int | None = None
    counted_here: bool = False  #: whether the parameters were counted by this package
    training_flops: float | None = None  #: hardware time as in Table 2, not arithmetic

    @property
    def is_ensemble(self) -> bool:
        """Whether several models translated together."""
        return "ensemble" in self.system


@dataclass(frozen=True)
class Conversion:
    """One output, scored in both ways by the same authors."""

    system: str
    languages: tuple[str, str]  #: codes of source and target
    tokenised: float  #: as "tokenised" in ``METRICS``; without case if ``lowercase``
    sacrebleu: float  #: as "sacrebleu" in ``METRICS``; without case if ``lowercase``
    source: str  #: of the scores, in words
    url: str
    key: str | None = None  #: its entry in the bibliography of the book
    lowercase: bool = False


_DATA: dict[str, Any] = yaml.safe_load(
    Path(__file__).with_suffix(".yml").read_text(encoding="utf-8")
)

#: The metrics, by the key that scores carry.
METRICS = {key: Metric(**found) for key, found in _DATA["metrics"].items()}


def _rows(name: str) -> list[dict[str, Any]]:
    return [row | dict(languages=tuple(row["languages"])) for row in _DATA[name]]


#: Every published score of the book.
PUBLISHED = tuple(PublishedScore(**row) for row in _rows("scores"))
#: Outputs that were scored in both ways.
CONVERSIONS = tuple(Conversion(**row) for row in _rows("conversions"))


def published_scores(
    languages: tuple[str, str] | None = None, test_set: str | None = None, metric: str | None = None
) -> list[PublishedScore]:
    """Return the published scores that match, lowest first; None matches anything."""
    if metric is not None and metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}")
    found = [
        score
        for score in PUBLISHED
        if languages in (None, score.languages)
        and test_set in (None, score.test_set)
        and metric in (None, score.metric)
    ]
    return sorted(found, key=lambda score: score.score)
