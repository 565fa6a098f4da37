"""Artificial news of a small town, and the headline of each report.

A report has two sentences in random order: one about an event *today*, the other about an earlier
one. The headline gives today's event in the present tense and in the active voice, without the
details::

    last year the teacher painted the library . today the old bridge was closed by the mayor after
    a long debate .
    ->  mayor closes bridge

A summariser has to choose a sentence, shorten it, and convert some from the passive voice.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from transformer.data.parallel import Split
from transformer.inference.decoding import greedy_search
from transformer.lab.beyond.encoder_model import pad_rows
from transformer.lab.beyond.reviews import WordIds
from transformer.lab.toys.properties import shift_right
from transformer.model.transformer import Transformer
from transformer.training.loss import TranslationLoss

#: The agents of events.
PEOPLE = (
    "mayor", "teacher", "baker", "farmer", "judge", "painter", "doctor", "pilot", "banker",
    "singer", "captain", "gardener",
)  # fmt: skip
#: The objects of events.
PLACES = (
    "bridge", "library", "mill", "school", "harbour", "station", "market", "museum", "park",
    "theatre", "church", "tower",
)  # fmt: skip
#: People and places that occur in no training report.
NEW_PEOPLE = ("plumber", "jeweller", "surgeon", "florist")
NEW_PLACES = ("castle", "airport", "stadium", "bakery")
#: The verbs, in the past and in the present tense.
DEEDS = (
    ("opened", "opens"), ("closed", "closes"), ("sold", "sells"), ("bought", "buys"),
    ("painted", "paints"), ("repaired", "repairs"),
)  # fmt: skip
QUALITIES = ("old", "new", "small", "")
ASIDES = ("after a long debate", "with great care", "in the rain", "")
EARLIER = ("last year", "in may", "two weeks ago")


def make_reports(
    count: int,
    seed: int,
    people: Sequence[str] = PEOPLE,
    places: Sequence[str] = PLACES,
) -> Split:
    """Draw reports (the source) and their headlines (the target)."""
    random = np.random.default_rng(seed)

    def pick(choices: Sequence[Any]) -> Any:
        return choices[int(random.integers(len(choices)))]

    def sentence(time: str, who: str, what: str, past: str) -> str:
        thing = f"the {pick(QUALITIES)} {what}"
        active, passive = f"the {who} {past} {thing}", f"{thing} was {past} by the {who}"
        return f"{time} {active if random.random() < 0.5 else passive} {pick(ASIDES)} ."

    reports, headlines = [], []
    for _ in range(count):
        who, what = pick(people), pick(places)
        past, present = pick(DEEDS)
        earlier = pick(EARLIER), pick(PEOPLE), pick(PLACES), pick(DEEDS)[0]
        sentences = [sentence("today", who, what, past), sentence(*earlier)]
        report = " ".join(sentences[i] for i in random.permutation(2))
        reports.append(" ".join(report.split()))
        headlines.append(f"{who} {present} {what}")
    return Split(reports, headlines)


def sentences_of(report: str) -> list[str]:
    """Split a report at its full stops."""
    return [part.strip() for part in report.split(" .") if part.strip()]


def lead(report: str) -> str:
    """Summarise by the first sentence, which is a strong baseline on real news."""
    return sentences_of(report)[0]


def todays_sentence(report: str) -> str:
    """Summarise by the sentence with "today", the best possible choice of a sentence."""
    return next(part for part in sentences_of(report) if "today" in part.split())


def rouge_1(summary: str, reference: str) -> float:
    """Return the F1 score of the words that two texts share, each with its multiplicity.

    This is ROUGE-1 without stemming, on words between blanks.
    """
    a, b = Counter(summary.split()), Counter(reference.split())
    return 2 * (a & b).total() / max(a.total() + b.total(), 1)


class Summariser:
    """A Transformer that writes headlines, with its vocabulary."""

    def __init__(self, model: Transformer, words: WordIds):
        self.model, self.words = model, words
        self._objective = TranslationLoss(model, epsilon=0.0)

    def encode(self, split: Split) -> tuple[Tensor, Tensor]:
        """Return ids of reports (N, S) and headlines (N, T), with EOS, padded with 0."""
        eos = self.model.config.eos_id
        reports, headlines = (
            pad_rows([[*self.words.encode(text), eos] for text in side])
            for side in (split.source, split.target)
        )
        return reports, headlines

    def loss(self, reports: Tensor, headlines: Tensor) -> Tensor:
        """Return the mean loss of a batch of ids (B, S) and (B, T), in nats per word."""
        inputs = shift_right(headlines, self.model.config.bos_id)
        total, _ = self._objective(reports, inputs, headlines)
        return total / (headlines != self.model.config.pad_id).sum()

    def __call__(self, reports: Sequence[str], max_length: int = 10) -> list[str]:
        """Write a headline of at most ``max_length`` tokens, EOS included, for each report."""
        eos = self.model.config.eos_id
        source = pad_rows([[*self.words.encode(text), eos] for text in reports])
        found = greedy_search(self.model, source, max_length)
        return [self.words.decode(hypothesis.tokens) for hypothesis in found]
