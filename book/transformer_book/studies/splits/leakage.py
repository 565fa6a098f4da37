"""Leaks made on purpose: the effect of test sentences in the training text on a test score.

Tatoeba has several translations of many sentences. A random split of its pairs therefore tests on
sentences whose other translations were in training. Here one test set is combined with training
sets that share less and less with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int64

from transformer.data.parallel import Split
from transformer.data.progress import progress
from transformer.data.splits import components
from transformer_book.studies.simple_translators import NearestSentence

#: The recorded effects of the leaks on test scores.
RECORD = Path(__file__).with_name("leakage.json")


def training_sets(
    pairs: Split, test: Int64[np.ndarray, " tests"]
) -> dict[str, Bool[np.ndarray, " pairs"]]:
    """Choose four training sets for one test set, each a subset of the one before.

    Returns:
        For each set a mask over the pairs: all but the test pairs, as in a random split; without
        the source sentences of the test; without any sentence of the test on either side; without
        the pairs connected to the test through shared sentences.
    """
    others = np.ones(len(pairs), dtype=bool)
    others[test] = False
    source, target = (
        np.unique(side, return_inverse=True)[1] for side in (pairs.source, pairs.target)
    )
    label = np.array(components(pairs.source, pairs.target))
    new_source = others & ~np.isin(source, source[test])
    return {
        "every other pair": others,
        "no source of the test": new_source,
        "no sentence of the test": new_source & ~np.isin(target, target[test]),
        "nothing connected": ~np.isin(label, label[test]),
    }


def recall(
    memory: NearestSentence,
    texts: Sequence[str],
    training: Mapping[str, Bool[np.ndarray, " pairs"]],
) -> dict[str, list[str]]:
    """Translate texts by the nearest sentence of each of several training sets."""
    found: dict[str, list[str]] = {name: [] for name in training}
    for text in progress(texts):
        similarity = memory.similarity(text)
        for name, chosen in training.items():
            nearest = int(np.argmax(np.where(chosen, similarity, -1.0)))
            found[name].append(memory.train.target[nearest])
    return found


@dataclass(frozen=True)
class Half:
    """Test pairs, one per component, and for each a relative: another pair of its component."""

    test: Split
    relatives: Split


def draw_halves(split: Split, seed: int = 0) -> tuple[Half, Half]:
    """Draw a test pair and a relative from every component that has two; return two halves.

    No sentence of one half is connected to the other. A model trained on the relatives of one half
    has therefore seen strangers of the other, and the same two models serve for both conditions.
    """
    label = np.array(components(split.source, split.target))
    groups = [np.flatnonzero(label == one) for one in np.unique(label)]
    groups = [group for group in groups if len(group) > 1]
    random = np.random.default_rng(seed)
    drawn = [random.permutation(groups[i])[:2] for i in random.permutation(len(groups))]
    size = len(drawn) // 2
    halves = np.array(drawn[:size]), np.array(drawn[size : 2 * size])
    first, second = (Half(*(_take(split, rows.tolist()) for rows in half.T)) for half in halves)
    return first, second


def _take(split: Split, rows: Sequence[int]) -> Split:
    return Split([split.source[i] for i in rows], [split.target[i] for i in rows])
