"""Recorded runs in groups, one group a recipe, so that every score comes with its spread.

Paper: section 6.1, Table 2
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from transformer.lab.table_2.published import METRICS, PublishedScore, published_scores

Record = dict[str, Any]

#: What a split of a family of corpora is called elsewhere, where a run calls it something else.
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
    """Name a test set so that runs on several corpora, and published scores, meet under it.

    Args:
        corpus: a name that :func:`~transformer.data.corpora.load_corpus` knows, or any other.
        split: one of its splits.

    Returns:
        Such as "newstest2014" or "multi30k-test2016"; family and split where there is no other
        name.

    Paper: section 6.1
    """
    family = corpus.rsplit("-", 2)[0]
    return _TEST_SETS.get((family, split), f"{family}-{split}")


vars(test_set)["__test__"] = False  # pytest takes the name for that of a test


def metric_of(record: Record, entry: Mapping[str, Any]) -> str:
    """Say how a score of a record was counted.

    Args:
        record: a recorded run.
        entry: one of its metrics.

    Returns:
        A key of :data:`~transformer.lab.table_2.published.METRICS` where published scores of the
        kind may exist; otherwise the name of the metric, and on which text it was counted.

    Paper: section 6.1, Table 2
    """
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
    """Name a metric in the head of a table.

    Args:
        metric: from :func:`metric_of`.

    Paper: section 6.1, Table 2
    """
    return METRICS[metric].title if metric in METRICS else metric


@dataclass(frozen=True)
class Spread:
    """One score of several runs that differ in their seed alone.

    Args:
        values: one score a seed, at least one.
    """

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return sum(self.values) / len(self.values)

    @property
    def low(self) -> float:
        """The lowest."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The highest."""
        return max(self.values)

    def overlaps(self, other: "Spread") -> bool:
        """Whether the two ranges, lowest to highest, have something in common."""
        return self.low <= other.high and other.low <= self.high

    def __str__(self) -> str:
        if len(self.values) == 1:
            return f"{self.mean:.2f} (one seed)"
        return f"{self.mean:.2f} ({self.low:.2f} to {self.high:.2f}, {len(self.values)} seeds)"


@dataclass(frozen=True)
class Group:
    """Recorded runs of one recipe, seed by seed.

    Args:
        name: of the preset.
        runs: the records by name.
    """

    name: str
    runs: dict[str, Record]

    @property
    def first(self) -> Record:
        """The first of the records; all but the seed is the same in the others."""
        return next(iter(self.runs.values()))

    @property
    def corpus(self) -> str:
        """Name of the corpus.

        Paper: section 5.1
        """
        return self.first["corpus"]["name"]

    @property
    def languages(self) -> tuple[str, str]:
        """Codes of source and target.

        Paper: section 5.1
        """
        source, target = self.first["corpus"]["languages"]
        return source, target

    @property
    def architecture(self) -> str:
        """ "transformer", "recurrent" or "convolutional".

        Paper: Table 2
        """
        return self.first.get("architecture", "transformer")

    @property
    def budget(self) -> tuple[int, int]:
        """Optimiser steps, and most tokens of a step.

        Paper: section 5.2
        """
        training = self.first["preset"]["training"]
        return training["max_steps"], training["batch_tokens"] * training["accumulate"]

    def scores(
        self, weights: str = "averaged", beam: int | None = None
    ) -> dict[tuple[str, str], Spread]:
        """Gather the scores of all seeds.

        Args:
            weights: "averaged" or "last".
            beam: size of the beam; None for that of the recipe.

        Returns:
            A :class:`Spread` for each (test set, metric).

        Paper: section 6.1
        """
        found: dict[tuple[str, str], list[float]] = {}
        for record in self.runs.values():
            wanted = record["preset"]["beam_size"] if beam is None else beam
            for entry in record["metrics"]:
                if entry["weights"] == weights and entry["beam_size"] == wanted:
                    where = test_set(self.corpus, entry["split"]), metric_of(record, entry)
                    found.setdefault(where, []).append(entry["score"])
        return {where: Spread(tuple(scores)) for where, scores in found.items()}


def group_runs(runs: Mapping[str, Record]) -> list[Group]:
    """Put runs together that differ in nothing but their seed.

    Args:
        runs: records by name, as :func:`~transformer.recipes.record.recorded_runs` has them.

    Returns:
        The groups in the order of their first runs; each has its runs in the order of the seeds.
    """
    groups: list[dict[str, Record]] = []
    for name, record in runs.items():
        for group in groups:
            if _same_recipe(next(iter(group.values())), record):
                group[name] = record
                break
        else:
            groups.append({name: record})
    return [
        Group(
            next(iter(group.values()))["preset"]["name"],
            dict(sorted(group.items(), key=lambda item: item[1]["seed"])),
        )
        for group in groups
    ]


def fitting_published(groups: Iterable[Group]) -> list[PublishedScore]:
    """Return the published scores that some group can be set beside, the lowest first.

    Paper: Table 2
    """
    found = {
        id(score): score
        for group in groups
        for name, metric in group.scores()
        if metric in METRICS
        for score in published_scores(group.languages, name, metric)
    }
    return sorted(found.values(), key=lambda score: score.score)


def _same_recipe(one: Record, other: Record) -> bool:
    """Whether two presets agree in all fields but the seed, as far as both records have them."""
    return one["corpus"]["sha256"] == other["corpus"]["sha256"] and _agree(
        one["preset"], other["preset"]
    )


def _agree(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    for name in one.keys() & other.keys() - {"seed"}:
        mine, theirs = one[name], other[name]
        if isinstance(mine, dict) and isinstance(theirs, dict):
            if not _agree(mine, theirs):
                return False
        elif mine != theirs:
            return False
    return True
