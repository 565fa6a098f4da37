"""What the runs of a record lack."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

Runs = Sequence[Mapping[str, Any]]
#: Runs, each with a line about it.
Missing = Iterator[tuple[dict[str, Any], str]]


def lacking(runs: Runs, **values: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield the combinations of some values that no run has, the last value changing fastest."""
    for combination in product(*values.values()):
        case = dict(zip(values, combination, strict=True))
        if not any(case.items() <= run.items() for run in runs):
            yield case
