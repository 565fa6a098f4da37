import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.data.parallel import Split, StreamedSplit
from transformer.data.splits import components, find_leaks, split_by_component

# Few distinct sentences, so that long chains of shared ones are common.
pair_lists = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("stuvwxyz")), min_size=1, max_size=25
)


def components_by_flooding(pairs):
    """The slow way: spread each label over pairs that share a sentence until nothing changes."""
    label = list(range(len(pairs)))
    changed = True
    while changed:
        changed = False
        for i, (a, b) in enumerate(pairs):
            for j, (c, d) in enumerate(pairs):
                if (a == c or b == d) and label[j] < label[i]:
                    label[i], changed = label[j], True
    return label


@given(pair_lists)
def test_components_equal_flooding(pairs):
    source, target = map(list, zip(*pairs, strict=True))
    assert components(source, target) == components_by_flooding(pairs)


def make_pairs(count):
    return Split([f"e{i // 2}" for i in range(count)], [f"g{i // 3}" for i in range(count)])


@pytest.mark.parametrize("seed", [0, 1, -1])
def test_splits_share_no_sentence_and_lose_no_pair(seed):
    pairs = make_pairs(600)
    splits = split_by_component(pairs, 50, 70, seed=seed)
    assert len(splits["validation"]) >= 50 and len(splits["test"]) >= 70
    assert sorted(pair for split in splits.values() for pair in split) == sorted(pairs)
    for side in ("source", "target"):
        sets = [set(getattr(split, side)) for split in splits.values()]
        assert sum(map(len, sets)) == len(set.union(*sets))


def test_split_is_the_same_on_every_machine():
    # Fails if the order depends on the random generator of a library.
    splits = split_by_component(Split(list("abcdef"), list("uvwxyz")), 1, 1)
    assert {name: split.source for name, split in splits.items()} == {
        "train": ["b", "d", "c", "e"],
        "validation": ["a"],
        "test": ["f"],
    }


def test_keep_out_removes_pairs_that_share_either_side_from_training_and_validation():
    pairs = make_pairs(600)
    keep_out = Split(["e7", "never seen"], ["other", "g50"])
    splits = split_by_component(pairs, 250, 20, keep_out=keep_out)
    for name in ("train", "validation"):
        assert "e7" not in splits[name].source
        assert "g50" not in splits[name].target
    kept = [pair for split in splits.values() for pair in split]
    assert len(pairs) - 5 <= len(kept) < len(pairs)  # e7 is in two pairs, g50 in three


def test_too_few_pairs_is_an_error():
    with pytest.raises(ValueError, match="train split would be empty"):
        split_by_component(Split(["a", "b"], ["x", "y"]), 1, 1)
    with pytest.raises(ValueError, match="validation split would be empty"):
        split_by_component(Split(["a", "a", "a"], ["x", "y", "z"]), 2, 0)


def test_leaks_are_counted_by_side_and_by_split():
    text = [("a", "s"), ("b", "t"), ("c", "u"), ("d", "d"), ("e", "w")]
    splits = {
        "train": StreamedSplit(lambda: iter(text), "text"),  # may be larger than the memory
        "validation": Split(["a", "a", "x"], ["s", "q", "w"]),
        "test": Split(["t", "x", "y"], ["b", "r", "y"]),  # of the other side: not shared
    }
    assert find_leaks(splits) == [
        "validation: 2 source and 2 target sentences of 3 pairs are in train as well",
        "test: 1 source and 0 target sentences of 3 pairs are in validation as well",
        "train: source and target are equal in 1 of 5 pairs",
        "test: source and target are equal in 1 of 3 pairs",
    ]
