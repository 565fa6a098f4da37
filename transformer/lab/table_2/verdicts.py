"""Comparisons of recorded runs with each other and with published scores, as sentences.

The sentences are made from the records, so that they remain true after a new run."""

from collections.abc import Iterable

from transformer.lab.table_2.published import PublishedScore
from transformer.lab.table_2.summary import Group


def versus_published(group: Group, published: PublishedScore) -> str | None:
    """Compare the runs of a group with a published score; None if they have no such score.

    Paper: Table 2
    """
    ours = group.scores().get((published.test_set, published.metric))
    if ours is None or group.languages != published.languages:
        return None
    theirs = f"{published.system} ({published.score:.2f})"
    side = "above" if ours.mean > published.score else "below"
    if len(ours.values) == 1:
        place = f"{abs(ours.mean - published.score):.2f} {side}"
        return f"{group.name}: {ours}, {place} {theirs}. One seed shows no spread."
    if ours.low <= published.score <= ours.high:
        return f"{group.name}: {ours}. {theirs} lies within this spread."
    return f"{group.name}: {ours}. Every seed is {side} {theirs}."


def versus_group(one: Group, other: Group, where: tuple[str, str]) -> str | None:
    """Compare the spreads of two groups on a test set by a metric; None without such scores."""
    mine, theirs = one.scores().get(where), other.scores().get(where)
    if mine is None or theirs is None:
        return None
    facts = f"{one.name} {mine}, {other.name} {theirs}"
    gap = f"{abs(mine.mean - theirs.mean):.2f}"
    if min(len(mine.values), len(theirs.values)) == 1:
        return f"{facts}: {gap} apart, and one seed shows no spread."
    if mine.overlaps(theirs):
        return f"{facts}: the ranges overlap, so the seeds do not tell them apart."
    ahead = one.name if mine.mean > theirs.mean else other.name
    return f"{facts}: the ranges do not overlap; {ahead} is ahead by {gap} on average."


def rivals(groups: Iterable[Group]) -> list[tuple[Group, Group]]:
    """Pair each Transformer with each other architecture of the same corpus, text and budget."""

    def setting(group: Group) -> tuple[object, ...]:
        return group.corpus, group.budget, group.first["preset"].get("text")

    groups = list(groups)
    return [
        (one, other)
        for one in groups
        for other in groups
        if one.architecture == "transformer" != other.architecture
        and setting(one) == setting(other)
    ]
