"""Recorded runs in groups by recipe, so that every score has a spread over the seeds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from transformer.recipes.record import recorded_preset
from transformer_book.studies.translation.published import METRICS, PublishedScore, published_scores

Record = dict[str, Any]

# The usual name of a test set, by family of corpora and split.
_TEST_SETS = {
    ("multi30k", "test"): "multi30k-test2016",
    ("multi30k", "test2017"): "multi30k-test2017",
    ("multi30k", "mscoco"): "multi30k-mscoco",
    ("wmt14", "test"): "newstest2014",
    ("wmt-newstest", "test"): "newstest2014",
    ("mixture", "test"): "newstest2014",
    ("mixture", "tatoeba"): "tatoeba-test",
    ("mixture", "multi30k"): "multi30k-test2016",
}


def test_set(corpus: str, split: str) -> str:
    """Name a test set as published scores do, such as "newstest2014", or by family and split."""
    family = corpus.rsplit("-", 2)[0]
    return _TEST_SETS.get((family, split), f"{family}-{split}")


vars(test_set)["__test__"] = False  # not a test for pytest


def metric_of(record: Record, entry: Mapping[str, Any]) -> str:
    """Return the key of a recorded metric in ``METRICS``, or its name if nothing is published."""
    lowercase = record["preset"].get("text", "plain") == "moses-lowercase"
    name, options = entry["name"], set(entry["signature"].split("|"))
    if name == "BLEU" and lowercase and "tok:none" in options:
        return "moses-lowercase"
    if name == "BLEU" and not lowercase and {"tok:13a", "case:mixed"} <= options:
        return "sacrebleu"
    if name == "BLEU" and not lowercase and {"tok:13a", "case:lc"} <= options:
        return "sacrebleu-lowercase"
    if name == "BLEU, compounds split" and not lowercase:
        return "tokenised"
    return f"{name} on lower-cased Moses tokens" if lowercase else name


def metric_title(metric: str) -> str:
    """Return the title of a metric of :func:`metric_of` in the head of a table."""
    return METRICS[metric].title if metric in METRICS else metric


@dataclass(frozen=True)
class Spread:
    """One score of several runs that differ in their seed only."""

    values: tuple[float, ...]  #: one per seed

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return sum(self.values) / len(self.values)

    @property
    def low(self) -> float:
        """Lowest score."""
        return min(self.values)

    @property
    def high(self) -> float:
        """Highest score."""
        return max(self.values)

    def __str__(self) -> str:
        if len(self.values) == 1:
            return f"{self.mean:.2f} (one seed)"
        return f"{self.mean:.2f} ({self.low:.2f} to {self.high:.2f}, {len(self.values)} seeds)"


@dataclass(frozen=True)
class Group:
    """Recorded runs of one recipe."""

    name: str  #: of the preset; with the steps, and then the precision, where groups share it
    runs: dict[str, Record]  #: by name, ordered by seed

    @property
    def first(self) -> Record:
        """Record of the first run; the others differ in their seed."""
        return next(iter(self.runs.values()))

    @property
    def corpus(self) -> str:
        """Name of the corpus."""
        return self.first["corpus"]["name"]

    @property
    def languages(self) -> tuple[str, str]:
        """Codes of source and target."""
        source, target = self.first["corpus"]["languages"]
        return source, target

    @property
    def architecture(self) -> str:
        """ "transformer", "recurrent" or "convolutional"."""
        return self.first.get("architecture", "transformer")

    @property
    def budget(self) -> tuple[int, int]:
        """Optimizer steps, and tokens of the largest step."""
        training = recorded_preset(self.first)["training"]
        return total_steps(self.first), training["batch_tokens"] * training["accumulate"]

    def scores(self) -> dict[tuple[str, str], Spread]:
        """Collect the scores of all seeds, averaged weights and the recipe's beam."""
        found: dict[tuple[str, str], list[float]] = {}
        for record in self.runs.values():
            best = "averaged", record["preset"]["beam_size"]
            for entry in record["metrics"]:
                if (entry["weights"], entry["beam_size"]) == best:
                    where = test_set(self.corpus, entry["split"]), metric_of(record, entry)
                    found.setdefault(where, []).append(entry["score"])
        return {where: Spread(tuple(scores)) for where, scores in found.items()}


def group_runs(runs: Mapping[str, Record]) -> list[Group]:
    """Group runs that differ in their seed only, each under a name of its own."""
    groups: list[dict[str, Record]] = []
    for name, record in runs.items():
        for group in groups:
            first = next(iter(group.values()))
            same_text = first["corpus"]["sha256"] == record["corpus"]["sha256"]
            if same_text and _agree(recorded_preset(first), recorded_preset(record)):
                group[name] = record
                break
        else:
            groups.append({name: record})
    firsts = [next(iter(group.values())) for group in groups]
    names = [record["preset"]["name"] for record in firsts]
    names = _told_apart(names, names, [f"{total_steps(first):,} steps" for first in firsts])
    corpora = [first["corpus"]["name"] for first in firsts]
    names = _told_apart(names, [*zip(names, corpora, strict=True)], map(precision_of, firsts))
    return [
        Group(name, dict(sorted(group.items(), key=lambda item: item[1]["seed"])))
        for name, group in zip(names, groups, strict=True)
    ]


def _told_apart(names: list[str], keys: list[Any], more: Iterable[str]) -> list[str]:
    """Add to each name whose key is not the only one of its kind what tells it apart."""
    return [
        name if keys.count(key) == 1 else f"{name}, {addition}"
        for name, key, addition in zip(names, keys, more, strict=True)
    ]


def precision_of(record: Record) -> str:
    """Name the numbers that a run computed with: "fp32", "bf16" or "fp16"."""
    precision: str = record["preset"]["training"].get("precision", "fp32")
    return precision


def total_steps(record: Record) -> int:
    """Return the steps of a run's recipe, and of the run whose model it started from."""
    steps: int = record["preset"]["training"]["max_steps"]
    return steps + (total_steps(record["first_run"]) if "first_run" in record else 0)


def learning_curve(record: Record) -> list[tuple[float, float, float]]:
    """Return tokens seen, BLEU and perplexity at each validation, those of a first run included."""
    first, per_step = record.get("first_run"), record["target_tokens"] / record["steps"]
    before, seen = (learning_curve(first), first["target_tokens"]) if first else ([], 0)
    return before + [
        (seen + per_step * entry["step"], entry["bleu"], entry["perplexity"])
        for entry in record["curve"]
        if "bleu" in entry
    ]


def fitting_published(groups: Iterable[Group]) -> list[PublishedScore]:
    """Return the published scores that a group can be compared with, lowest first."""
    found = {
        id(score): score
        for group in groups
        for name, metric in group.scores()
        if metric in METRICS
        for score in published_scores(group.languages, name, metric)
    }
    return sorted(found.values(), key=lambda score: score.score)


def _agree(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two presets agree in all fields that both have, except for the seed."""
    return all(
        _agree(one[name], other[name]) if isinstance(one[name], dict) else one[name] == other[name]
        for name in one.keys() & other.keys() - {"seed"}
    )
