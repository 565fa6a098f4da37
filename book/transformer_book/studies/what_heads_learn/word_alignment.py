"""Word alignments by a statistical aligner, which knows no attention, and their error rate."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from transformer.data.parallel import Split
from transformer_book.studies.simple_translators import words_of

# Pairs of (source word, target word), both counted from 0.
WordLinks = frozenset[tuple[int, int]]


@dataclass(frozen=True)
class AlignedPair:
    """A sentence pair with its word alignment."""

    source: str
    target: str
    sure: WordLinks
    possible: WordLinks  #: allowed links, including the sure ones.


class WordAligner:
    """IBM model 1 with a preference for the diagonal, as in the aligner fast_align."""

    def __init__(
        self, pairs: Split, iterations: int = 5, sharpness: int | float = 4.0, none: float = 0.08
    ):
        self.sharpness, self.none = sharpness, none
        self._source: dict[str, int] = {"": 0}  # the empty word is "none"
        self._target: dict[str, int] = {}
        cells, places, priors, groups = [], [], [], 0
        for source, target in pairs:
            rows, columns = words_of(source), words_of(target)
            s = [0, *(self._source.setdefault(word, len(self._source)) for word in rows)]
            t = [self._target.setdefault(word, len(self._target)) for word in columns]
            cells.append(np.add.outer(np.array(t, int), np.array(s, int) << 32).ravel())
            priors.append(self._prior(len(rows), len(columns)).ravel())
            places.append(np.repeat(np.arange(groups, groups + len(t)), len(s)))
            groups += len(t)
        numbered = np.concatenate(cells), np.concatenate(priors), np.concatenate(places)
        self._learn(*numbered, iterations)

    def probabilities(
        self, source: Sequence[str], target: Sequence[str]
    ) -> Float[np.ndarray, "target source"]:
        """Return the probability of each source word, or of none, for each target word."""
        s = [0, *(self._source.get(word, -1) for word in source)]
        joint = self._prior(len(source), len(target))
        for row, word in enumerate(target):
            t = self._target.get(word, -1)
            keys = np.array([t + (i << 32) if min(i, t) >= 0 else -1 for i in s])
            found = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
            joint[row] *= np.where(self._keys[found] == keys, self._table[found], 1e-9)
        return joint / joint.sum(axis=1, keepdims=True)

    def align(self, source: Sequence[str], target: Sequence[str]) -> WordLinks:
        """Link each target word to its most probable source word, unless that is "none"."""
        if not source or not target:
            return frozenset()
        best = self.probabilities(source, target).argmax(axis=1)
        return frozenset((int(i) - 1, j) for j, i in enumerate(best) if i)

    def _prior(self, wide: int, long: int) -> np.ndarray:
        """Return the prior (target, none and source), which depends on the positions only."""
        off = np.abs(
            np.subtract.outer(
                (np.arange(long) + 0.5) / max(long, 1), (np.arange(wide) + 0.5) / max(wide, 1)
            )
        )
        near = np.exp(-self.sharpness * off)
        near *= (1 - self.none) / np.maximum(near.sum(axis=1, keepdims=True), 1e-30)
        return np.concatenate([np.full((long, 1), self.none), near], axis=1)

    def _learn(
        self, cells: np.ndarray, priors: np.ndarray, places: np.ndarray, iterations: int
    ) -> None:
        self._keys, pair = np.unique(cells, return_inverse=True)
        source = self._keys >> 32
        self._table = np.full(len(self._keys), 1.0)
        for _ in range(iterations):
            share = self._table[pair] * priors
            share /= np.bincount(places, share)[places]
            counts = np.bincount(pair, share, minlength=len(self._keys))
            self._table = counts / np.maximum(np.bincount(source, counts), 1e-30)[source]


def aligned_both_ways(
    pairs: Iterable[tuple[str, str]], forward: WordAligner, backward: WordAligner
) -> list[AlignedPair]:
    """Align pairs in both directions: links of both aligners are sure, links of either possible."""
    found = []
    for source, target in pairs:
        rows, columns = words_of(source), words_of(target)
        one = forward.align(rows, columns)
        other = frozenset((i, j) for j, i in backward.align(columns, rows))
        found.append(AlignedPair(source, target, one & other, one | other))
    return found


def alignment_error_rate(found: Sequence[WordLinks], right: Sequence[AlignedPair]) -> float:
    """Return ``1 - (|A & S| + |A & P|) / (|A| + |S|)`` of found, sure and possible links."""
    total = sum(len(a) + len(r.sure) for a, r in zip(found, right, strict=True))
    hits = sum(len(a & r.sure) + len(a & r.possible) for a, r in zip(found, right, strict=True))
    return 1 - hits / total
