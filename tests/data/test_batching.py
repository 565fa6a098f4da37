from copy import copy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer.data.batching import (
    EncodedPairs,
    Sentences,
    TokenBatches,
    encode_pairs,
    padding_waste,
)
from transformer.data.parallel import Split, StreamedSplit
from transformer.data.tokenizer import Tokenizer


def sentences(lengths):
    """Sentences of given lengths with <eos>; all other ids differ from one another."""
    rows, next_id = [], 10
    for length in lengths:
        rows.append([*range(next_id, next_id + length - 1), 2])
        next_id += length
    offsets = np.cumsum([0, *lengths], dtype=np.int64)
    return Sentences(np.array([i for row in rows for i in row], dtype=np.int32), offsets)


def pairs_of_lengths(lengths):
    return EncodedPairs(*(sentences(side) for side in zip(*lengths, strict=True)))


side = st.integers(1, 30)
length_pairs = st.lists(st.tuples(side, side), min_size=1, max_size=60)


@given(length_pairs, st.integers(30, 200), st.integers(0, 9), st.integers(0, 9))
def test_every_pair_exactly_once_within_the_budget(lengths, budget, seed, epoch):
    pairs = pairs_of_lengths(lengths)
    batches = TokenBatches(pairs, budget, seed=seed)
    plan = batches.epoch(epoch)
    assert len(plan) == len(batches)
    assert sorted(np.concatenate(plan)) == list(range(len(lengths)))
    for indices in plan:
        batch = batches.batch(indices)
        assert batch.source.numel() <= budget and batch.labels.numel() <= budget


@given(length_pairs, st.integers(30, 200), st.integers(0, 9), st.integers(0, 9))
def test_plan_depends_on_seed_and_epoch_alone(lengths, budget, seed, epoch):
    plan = TokenBatches(pairs_of_lengths(lengths), budget, seed=seed).epoch(epoch)
    again = TokenBatches(pairs_of_lengths(lengths), budget, seed=seed)
    again.epoch(epoch + 1)  # planning another epoch in between changes nothing
    # The rest of an interrupted epoch equals that of the uninterrupted one.
    resumed = again.epoch(epoch)
    assert len(plan) == len(resumed) and all(map(np.array_equal, plan, resumed))


def greedy_sizes(lengths, budget):
    """Sizes of batches that are filled one row after another, the slow way."""
    sizes, widest = [], 0
    for source, target in sorted(lengths, key=lambda p: (p[1], p[0] if p[1] % 2 == 0 else -p[0])):
        widest = max(widest, source, target)
        if sizes and widest * (sizes[-1] + 1) <= budget:
            sizes[-1] += 1
        else:
            sizes.append(1)
            widest = max(source, target)
    return sizes


@given(length_pairs, st.integers(30, 200))
def test_batches_are_as_full_as_the_budget_allows(lengths, budget):
    plan = TokenBatches(pairs_of_lengths(lengths), budget).epoch(0)
    assert sorted(map(len, plan)) == sorted(greedy_sizes(lengths, budget))


def composition(plan):
    return {frozenset(rows.tolist()) for rows in plan}


def test_epochs_and_seeds_differ_in_order_and_composition():
    rng = np.random.default_rng(0)
    pairs = pairs_of_lengths(rng.integers(2, 6, (400, 2)).tolist())
    batches = TokenBatches(pairs, 60)
    first, second = batches.epoch(0), batches.epoch(1)
    other_seed = TokenBatches(pairs, 60, seed=1).epoch(0)
    for plan in (second, other_seed):
        assert len(composition(first) & composition(plan)) < len(first) / 2
        widths = [batches.batch(rows).labels.shape[1] for rows in plan]
        assert widths != sorted(widths) and widths != sorted(widths, reverse=True)


def test_long_pairs_are_dropped_and_counted():
    pairs = pairs_of_lengths([(3, 3), (11, 3), (3, 11), (10, 10)])
    batches = TokenBatches(pairs, 100, max_length=10)
    assert batches.num_dropped == 2
    assert sorted(np.concatenate(batches.epoch(0))) == [0, 3]
    assert TokenBatches(pairs, 10).num_dropped == 2
    assert TokenBatches(pairs, 10, max_length=50).num_dropped == 2
    assert TokenBatches(pairs, 11).num_dropped == 0


def test_arguments_out_of_range():
    pairs = pairs_of_lengths([(5, 5)])
    with pytest.raises(ValueError, match="all 1 pairs are longer than 4 tokens"):
        TokenBatches(pairs, 100, max_length=4)
    for name, value in (("batch_tokens", 0), ("seed", -1), ("max_length", 0)):
        with pytest.raises(ValueError, match=f"{name} must be .* at least .*, got {value}"):
            TokenBatches(pairs, **{"batch_tokens": 100, name: value})
    with pytest.raises(ValueError, match="epoch must be at least 0"):
        TokenBatches(pairs, 100).epoch(-1)


def test_batch_by_hand():
    pairs = EncodedPairs(
        Sentences(np.array([7, 2, 8, 9, 2, 2], np.int32), np.array([0, 2, 5, 6])),
        Sentences(np.array([4, 5, 6, 2, 2, 3, 2], np.int32), np.array([0, 4, 5, 7])),
    )
    batch = TokenBatches(pairs, 100).batch(np.array([1, 0, 2]))
    assert batch.source.tolist() == [[8, 9, 2], [7, 2, 0], [2, 0, 0]]
    assert batch.target_input.tolist() == [[1, 0, 0, 0], [1, 4, 5, 6], [1, 3, 0, 0]]
    assert batch.labels.tolist() == [[2, 0, 0, 0], [4, 5, 6, 2], [3, 2, 0, 0]]
    assert (batch.num_source_tokens, batch.num_target_tokens, len(batch)) == (6, 7, 3)
    assert {t.dtype for t in (batch.source, batch.target_input, batch.labels)} == {torch.int64}


def test_padding_waste_by_hand():
    batches = TokenBatches(pairs_of_lengths([(1, 2), (3, 2)]), 100)
    assert padding_waste([batches.batch(np.array([0, 1]))]) == pytest.approx(2 / 10)
    assert padding_waste([batches.batch(np.array([0]))]) == 0
    with pytest.raises(ValueError, match="at least one batch"):
        padding_waste([])


def test_two_tokenizers_must_agree_on_the_special_ids():
    source = Tokenizer.train(["a"], 259)
    target = copy(source)
    assert len(encode_pairs(source, Split(["a"], ["b"]), target)) == 1
    target.eos_id = 5
    with pytest.raises(ValueError, match="tokenizer has eos_id 2, target_tokenizer 5"):
        encode_pairs(source, Split(["a"], ["b"]), target)


# ---------------------------------------------------------------------- what is no pair of texts


@pytest.fixture
def tokenizer(unchecked):
    return Tokenizer.train(["a"], 259)


@pytest.mark.parametrize("kind", [Split, StreamedSplit, list])
def test_blank_sides_are_left_out_with_a_warning_as_from_files(tokenizer, kind):
    pairs = [("a", "b"), ("", "c"), ("d", " \t"), ("e f", "g")]
    given = dict(
        Split=lambda: Split(*map(list, zip(*pairs, strict=True))),
        StreamedSplit=lambda: StreamedSplit(lambda: pairs, "mine"),
        list=lambda: pairs,
    )[kind.__name__]()
    with pytest.warns(UserWarning, match="split: left out 2 with a blank side, of 4 pairs"):
        encoded = encode_pairs(tokenizer, given)
    clean = Split(["a", "e f"], ["b", "g"])
    assert encoded.checksum == encode_pairs(tokenizer, clean).checksum and len(encoded) == 2


@pytest.mark.parametrize("make, says", [
    (lambda: Split(["a", "b"], ["c", None]), r"target\[1\] must be a string, got None"),
    (lambda: Split([float("nan")], ["c"]), r"source\[0\] must be a string, got nan"),
    (lambda: [("a", "b"), (None, "d")], r"split\[1\] must be a pair .*, got \(None, 'd'\)"),
    (lambda: [{"en": "a", "de": "b"}], r"split\[0\] must be a pair of strings, got {'en'"),
    (lambda: ["ab"], r"split\[0\] must be a pair of strings, got 'ab'"),
])  # fmt: skip
def test_what_is_not_text_is_named_with_its_row(tokenizer, make, says):
    with pytest.raises(TypeError, match=says):
        encode_pairs(tokenizer, make())
