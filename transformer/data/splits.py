"""Train, validation and test splits that share no sentence.

In a corpus of short sentences one English sentence has several German translations and the
other way round. A random split by pairs would then test on sentences seen in training. Here
pairs that share a sentence, directly or through other pairs, form a component, and a component
never crosses from one split to another.
"""

from collections.abc import Sequence
from hashlib import blake2b
from itertools import groupby

import numpy as np

from transformer.data.parallel import Split


def components(source: Sequence[str], target: Sequence[str]) -> list[int]:
    """Label every pair with the connected component it belongs to.

    Args:
        source: Source sentences.
        target: Their translations, of the same length.

    Returns:
        For every pair, the index of the first pair of its component.
    """
    label = np.arange(len(source))
    sides = []
    for side in (source, target):
        number: dict[str, int] = {}
        sides.append(np.array([number.setdefault(text, len(number)) for text in side], np.int64))
    # All pairs with one sentence take the smallest label among them, in turns for both sides,
    # until nothing changes.
    while True:
        before = label
        for sentence in sides:
            smallest = np.full(len(label), len(label))
            np.minimum.at(smallest, sentence, label)
            label = smallest[sentence]
        # A label is itself a pair: taking over that pair's label doubles the pace along chains.
        label = label[label]
        if np.array_equal(label, before):
            return label.tolist()


def split_by_component(
    pairs: Split,
    validation_size: int = 2000,
    test_size: int = 2000,
    seed: int = 0,
    keep_out: Split | None = None,
) -> dict[str, Split]:
    """Split pairs so that no sentence of one split occurs on the same side of another.

    Components are shuffled. The first ones make the test split, the next ones the validation
    split, the rest is for training. Whole components are taken, so a split may be somewhat
    larger than asked for. A component larger than a whole split stays in training: in subtitles,
    say, "Yes." ties a large part of the corpus together.

    Args:
        pairs: All pairs.
        validation_size: Smallest number of validation pairs, at least 1.
        test_size: Smallest number of test pairs, 0 for no test split.
        seed: Chooses the shuffle. The order comes from a hash of the text, so it is the same on
            every machine, with every version of Python and its libraries.
        keep_out: A further test set. Pairs that share a source or a target sentence with it go
            neither to training nor to validation.

    Returns:
        The splits ``train``, ``validation`` and, if asked for, ``test``.

    Raises:
        ValueError: If a split would be empty.
    """
    label = components(pairs.source, pairs.target)
    # A keyed hash is the shuffle: it needs no promise about any random generator's future.
    key = seed.to_bytes(8, "big", signed=True)
    rank = [
        blake2b(f"{source}\t{target}".encode(), digest_size=8, key=key).digest()
        for source, target in pairs
    ]
    order = sorted(range(len(pairs)), key=lambda pair: (rank[label[pair]], label[pair], rank[pair]))

    test, rest = _take_components(order, label, test_size)
    if keep_out is not None:
        known_source, known_target = set(keep_out.source), set(keep_out.target)
        rest = [
            pair
            for pair in rest
            if pairs.source[pair] not in known_source and pairs.target[pair] not in known_target
        ]
    validation, train = _take_components(rest, label, validation_size)
    wanted = {"train": (train, 1), "validation": (validation, 1), "test": (test, test_size)}
    for name, (chosen, least) in wanted.items():
        if least and not chosen:
            raise ValueError(
                f"pairs: the {name} split would be empty; {len(pairs)} pairs in "
                f"{len(set(label))} groups that share sentences are too few for "
                f"{validation_size} validation and {test_size} test pairs"
            )
    # Training text in an order of its own, so that its first lines are a fair sample.
    train.sort(key=lambda pair: rank[pair])
    return {
        name: Split([pairs.source[i] for i in chosen], [pairs.target[i] for i in chosen])
        for name, (chosen, _) in wanted.items()
        if chosen
    }


def _take_components(order: list[int], label: list[int], size: int) -> tuple[list[int], list[int]]:
    """Take whole components from the front until there are ``size`` pairs; return both parts."""
    taken: list[int] = []
    left: list[int] = []
    for _, group in groupby(order, key=lambda pair: label[pair]):
        component = list(group)
        fits = len(taken) < size and len(component) <= size
        (taken if fits else left).extend(component)
    return taken, left
