"""Train, validation and test splits that share no sentence.

In a corpus of short sentences, one English sentence has several German translations and vice
versa. After a random split by pairs, the test set would contain sentences seen in training. Here,
pairs that share a sentence, directly or through other pairs, form a component, and each component
belongs to one split.
"""

import warnings
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import groupby

import numpy as np

from transformer.data.parallel import Split


def components(source: Sequence[str], target: Sequence[str]) -> list[int]:
    """Return, for every pair of source and target, the index of the first pair of its component."""
    label = np.arange(len(source))
    sides = []
    for side in (source, target):
        number: dict[str, int] = {}
        sides.append(np.array([number.setdefault(text, len(number)) for text in side], np.int64))
    # All pairs with the same sentence take their smallest label, alternating between the sides,
    # until nothing changes.
    while True:
        before = label
        for sentence in sides:
            smallest = np.full(len(label), len(label))
            np.minimum.at(smallest, sentence, label)
            label = smallest[sentence]
        # A label is itself a pair: adopting that pair's label doubles the speed along chains.
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

    Components are shuffled and not divided. The first ones form the test split, the next ones the
    validation split, and the rest the training split. A component larger than a whole split stays
    in training: in subtitles, for example, "Yes." connects a large part of the corpus. A split
    with fewer pairs than requested gives a warning.

    Args:
        pairs: all pairs.
        validation_size: number of validation pairs to aim at, at least 1; up to twice as many.
        test_size: the same for the test split, 0 for no test split.
        seed: of the shuffle, which sorts by a hash of the text: the result is the same on every
            machine and with every version of Python and its libraries.
        keep_out: a further test set. Pairs that share a source or a target sentence with it are in
            neither training nor validation.

    Raises:
        ValueError: if a split would be empty.
    """
    label = components(pairs.source, pairs.target)
    # A keyed hash shuffles, because random generators may change between versions.
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
    wanted = {
        "train": (train, 1),
        "validation": (validation, max(1, validation_size)),
        "test": (test, test_size),
    }
    for name, (chosen, size) in wanted.items():
        if size and not chosen:
            raise ValueError(
                f"pairs: the {name} split would be empty; {len(pairs)} pairs in "
                f"{len(set(label))} groups that share sentences are too few for "
                f"{validation_size} validation and {test_size} test pairs"
            )
        if len(chosen) < size:
            warnings.warn(
                f"pairs: the {name} split has {len(chosen)} pairs instead of {size}; the other "
                f"groups that share sentences are larger than that",
                stacklevel=2,
            )
    # Training text in random order, so that its first lines are a fair sample.
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


def find_leaks(splits: Mapping[str, Split]) -> list[str]:
    """Describe overlaps and copies that would make scores meaningless, one line per finding.

    Counts the sentences of a split that occur verbatim on the same side of another split, and the
    pairs whose two sides are equal, if they are more than 1% of a split. The training text is read
    once and may be larger than the memory.
    """
    held_out = {name: split for name, split in splits.items() if name != "train"}
    names = ["train", *held_out]
    sentences = {name: (set(split.source), set(split.target)) for name, split in held_out.items()}
    # Of the training text, only the sentences that are held out as well are kept.
    known: list[set[str]] = [set().union(*side) for side in zip(*sentences.values(), strict=True)]
    sentences["train"] = (set(), set())
    sizes, equal = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for name in names:
        for pair in splits[name]:
            sizes[name] += 1
            equal[name] += pair[0] == pair[1]
            if name == "train":
                for text, held, seen in zip(pair, known, sentences["train"], strict=False):
                    if text in held:
                        seen.add(text)

    lines = []
    for name, other in [(name, other) for i, name in enumerate(names) for other in names[:i]]:
        sides = (held_out[name].source, held_out[name].target)
        sources, targets = (
            sum(text in there for text in side)
            for side, there in zip(sides, sentences[other], strict=True)
        )
        if sources or targets:
            lines.append(
                f"{name}: {sources:,} source and {targets:,} target sentences of {sizes[name]:,} "
                f"pairs are in {other} as well"
            )
    for name in names:
        if equal[name] > 0.01 * sizes[name]:
            lines.append(
                f"{name}: source and target are equal in {equal[name]:,} of {sizes[name]:,} pairs"
            )
    return lines
