"""News of a small town, made by rules, and the headline of each report.

A report has two sentences. One says what happened *today*, the other what happened before; both are
about people of the town and what they do to its places. Which comes first is drawn. The headline
says today's event in the present tense, whether the report has it in the active or the passive, and
leaves out what is said beside it::

    last year the teacher painted the library . today the old bridge was closed by the mayor after
    a long debate .
    ->  mayor closes bridge

So a summariser has to choose a sentence, shorten it, and turn some round.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transformer.data.parallel import Split
from transformer.inference.decoding import greedy_search
from transformer.lab.beyond.encoder_model import pad_rows
from transformer.lab.beyond.reviews import WordIds
from transformer.model.transformer import Transformer
from transformer.training.loss import TranslationLoss

#: Who acts.
PEOPLE = (
    "mayor", "teacher", "baker", "farmer", "judge", "painter", "doctor", "pilot", "banker",
    "singer", "captain", "gardener",
)  # fmt: skip
#: What is acted upon.
PLACES = (
    "bridge", "library", "mill", "school", "harbour", "station", "market", "museum", "park",
    "theatre", "church", "tower",
)  # fmt: skip
#: People and places that no training report names.
NEW_PEOPLE = ("plumber", "jeweller", "surgeon", "florist")
NEW_PLACES = ("castle", "airport", "stadium", "bakery")
#: What is done, in the past and in the present.
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
    """Draw reports and their headlines; the same seed draws the same.

    Args:
        count: how many.
        seed: of the draw.
        people: who may act today. Those of the past are always among ``PEOPLE``.
        places: what may be acted upon today.

    Returns:
        Reports as the source, headlines as the target.
    """
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
    """Cut a report at its full stops."""
    return [part.strip() for part in report.split(" .") if part.strip()]


def lead(report: str) -> str:
    """Summarise by the first sentence, as newspapers are written to allow."""
    return sentences_of(report)[0]


def todays_sentence(report: str) -> str:
    """Summarise by the sentence that says "today": the best that can be had by choosing alone."""
    return next(part for part in sentences_of(report) if "today" in part.split())


def rouge_1(summary: str, reference: str) -> float:
    """F1 of the words that two texts share, each counted as often as both have it, from 0 to 1.

    This is the idea of ROUGE-1 without its program: no stemming, words between blanks.

    Args:
        summary: what was written.
        reference: what should have been.
    """
    a, b = Counter(summary.split()), Counter(reference.split())
    return 2 * (a & b).total() / max(a.total() + b.total(), 1)


class Summariser:
    """A Transformer that writes headlines, with its words.

    Args:
        model: its ids are those of ``words``.
        words: an id for each word.
    """

    def __init__(self, model: Transformer, words: WordIds):
        self.model, self.words = model, words
        self._objective = TranslationLoss(model, epsilon=0.0)

    def encode(self, split: Split) -> tuple[Tensor, Tensor]:
        """Ids of reports (N, S) and headlines (N, T), each with EOS at its end, padded with 0.

        Paper: section 5.1
        """
        eos = self.model.config.eos_id
        reports, headlines = (
            pad_rows([[*self.words.encode(text), eos] for text in side])
            for side in (split.source, split.target)
        )
        return reports, headlines

    def loss(self, reports: Tensor, headlines: Tensor) -> Tensor:
        """Mean loss a word of a batch, in nats.

        Args:
            reports: ids (B, S).
            headlines: ids (B, T).

        Paper: section 5.4
        """
        begin = torch.full_like(headlines[:, :1], self.model.config.bos_id)
        total, _ = self._objective(reports, torch.cat([begin, headlines[:, :-1]], 1), headlines)
        return total / (headlines != self.model.config.pad_id).sum()

    def __call__(self, reports: Sequence[str], max_length: int = 10) -> list[str]:
        """Write a headline for each report, greedily.

        Args:
            reports: words with blanks between.
            max_length: most words of a headline, its end counted.

        Paper: section 6.1
        """
        eos = self.model.config.eos_id
        source = pad_rows([[*self.words.encode(text), eos] for text in reports])
        found = greedy_search(self.model, source, max_length)
        return [self.words.decode(hypothesis.tokens) for hypothesis in found]
