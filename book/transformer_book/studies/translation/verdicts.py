"""Paired differences between recorded runs of different architectures."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from transformer.inference.significance import interval, paired_bootstrap
from transformer_book.studies.translation.counts import SCORES, read_counts
from transformer_book.studies.translation.recorded import RUNS
from transformer_book.studies.translation.summary import Group, metric_of, precision_of, test_set


@dataclass(frozen=True)
class Difference:
    """Difference between the mean scores of two groups, with its paired 95% interval."""

    mean: float
    low: float
    high: float


def difference(
    one: Group, other: Group, where: tuple[str, str], folder: Path | str = RUNS
) -> Difference | None:
    """Compare two groups on the same sentences, over sentences and, where there are several, seeds.

    Returns:
        None if a run has no score there, or its translations have not been counted.
    """
    ours, others = (_counts(group, where, folder) for group in (one, other))
    if ours is None or others is None:
        return None
    (name, mine), (_, theirs) = ours, others
    score = SCORES[name]
    draws = paired_bootstrap(mine, theirs, samples=2000, score=score)
    means = [float(np.mean([score(t.sum(axis=0)) for t in tables])) for tables in (mine, theirs)]
    return Difference(means[0] - means[1], *interval(draws))


def _counts(
    group: Group, where: tuple[str, str], folder: Path | str
) -> tuple[str, list[np.ndarray]] | None:
    """Return the name of the metric and the counts of each run; None if one has none."""
    tables, name = [], ""
    for run, record in group.runs.items():
        counts = read_counts(run, folder)
        for entry in record["metrics"]:
            here = test_set(group.corpus, entry["split"]), metric_of(record, entry)
            key = f"{entry['split']} {entry['name']}"
            if here == where and key in counts:
                tables.append(counts[key])
                name = entry["name"]
                break
        else:
            return None
    return name, tables


def rivals(groups: Iterable[Group]) -> list[tuple[Group, Group]]:
    """Pair each Transformer with each other architecture of the same text, budget and precision."""

    def setting(group: Group) -> tuple[object, ...]:
        text = group.first["preset"].get("text")
        return group.corpus, text, group.budget, precision_of(group.first)

    groups = list(groups)
    return [
        (one, other)
        for one in groups
        for other in groups
        if one.architecture == "transformer" != other.architecture
        and setting(one) == setting(other)
    ]


def all_differences(
    groups: Iterable[Group], folder: Path | str = RUNS
) -> list[tuple[Group, str, str, Difference]]:
    """Compare all :func:`rivals` by BLEU and chrF2 on each of their test sets."""
    found = []
    for one, other in rivals(groups):
        for where in one.scores():
            gap = difference(one, other, where, folder)
            if gap is not None:
                metric = "chrF2" if "chrF2" in where[1] else "BLEU"
                found.append((other, where[0], metric, gap))
    return found
