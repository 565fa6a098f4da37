"""Merges and batches to play with are those of byte-pair encoding and of the package."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.self_contained import self_contained
from transformer.data.batching import EncodedPairs, Sentences, TokenBatches, padding_waste
from transformer.data.corpora import load_corpus
from transformer_book.pictures import SENTENCE
from transformer_book.studies.tokens.merges import (
    apply_merges,
    count_words,
    learn_merges,
    split_words,
)
from transformer_book.widgets.text import BatchPacker, MergeStepper

TEXTS = [SENTENCE, "aaa aaaa 🙂 <b>naïve</b>"]


@pytest.fixture(scope="module")
def words():
    split = load_corpus("tatoeba-en-de").validation
    # Overlapping pairs, which are joined from left to right.
    return count_words([*split.source[:300], *split.target[:300], *["aaa aaaa"] * 200])


@pytest.fixture(scope="module")
def merges(words):
    return learn_merges(words, 300)


@pytest.fixture(scope="module")
def stepper(words, merges):
    texts = [split_words(text) for text in TEXTS]
    return MergeStepper(words, merges, texts, counted=30, leaps=[100, 300], shown=2)


def test_pieces_are_those_of_the_merges_at_every_step(stepper, merges):
    for stop, shown in zip(stepper.stops, stepper.pieces, strict=True):
        rank = {pair: i for i, pair in enumerate(merges[:stop])}
        for text, pieces in zip(TEXTS, shown, strict=True):
            assert pieces == [p for word in split_words(text) for p in apply_merges(word, rank)]


def test_counts_are_those_of_all_words(stepper, words, merges):
    for step in (0, 1, 7, 30):
        rank, count = {pair: i for i, pair in enumerate(merges[:step])}, Counter()
        for word, times in words.items():
            for pair in pairwise(apply_merges(word, rank)):
                count[pair] += times
        (best, often), *others = stepper.most_frequent[step]
        assert (best, often) == (merges[step], max(count.values()))
        assert sorted((n for _, n in others), reverse=True) == [n for _, n in others]
        for pair, times in others:
            assert count[pair] == times
        assert [n for _, n in others] == sorted(count.values(), reverse=True)[1:5]


def test_it_is_small_repeatable_and_loads_nothing(stepper):
    data = self_contained(lambda: stepper, 100_000)
    assert data["stops"][data["first"]] == 2 and len(data["joins"]) == len(data["stops"]) - 1
    assert len(data["after"]) + len(data["pairs"]) == len(data["stops"])


def test_no_row_of_the_still_repeats_the_row_above(stepper):
    figure = Figure()
    stepper.draw(figure)
    _, _, *cells = (text.get_text() for text in figure.axes[0].texts)  # without the head
    stops, rows = cells[::2], cells[1::2]
    assert stops == ["0", "10", "20"]  # after 20 merges, "aaa aaaa 🙂 <b" no longer changes
    assert all(row != following for row, following in pairwise(rows))


def test_wrong_merges_and_steps_are_refused(words, merges):
    swapped = [merges[0], merges[60], *merges[1:]]
    with pytest.raises(ValueError, match="merge 2, .* is not the next one"):
        MergeStepper(words, swapped, [["a"]])
    with pytest.raises(ValueError, match="got 50"):
        MergeStepper(words, merges, [["a"]], shown=50)


def packer(**options):
    lengths = np.random.default_rng(1).integers(2, 31, size=120)
    return BatchPacker(lengths, **options)


@pytest.mark.parametrize("width", BatchPacker.ORDERS.values())
@pytest.mark.parametrize("budget", [64, 256])
def test_batches_hold_every_sentence_and_keep_the_budget(width, budget):
    made = packer().plan(width, budget)
    in_order = [length for batch in made for length in batch]
    assert sorted(in_order) == sorted(packer().lengths)
    for start in range(0, 120, width):
        assert in_order[start : start + width] == sorted(packer().lengths[start : start + width])
    for batch, following in pairwise(made):
        assert len(batch) * max(batch) <= budget
        # The next sentence would have been too much.
        assert (len(batch) + 1) * max(*batch, following[0]) > budget


def test_sorted_batches_are_the_packages():
    lengths = packer().lengths
    ids, ends = np.ones(sum(lengths), np.int32), np.cumsum([0, *lengths])
    pairs = EncodedPairs(Sentences(ids, ends), Sentences(ids, ends), 0, 1)
    made = TokenBatches(pairs, 256)
    sizes = sorted(len(rows) for rows in made.epoch(0))
    assert sorted(map(len, packer().plan(10**9, 256))) == sizes
    waste = padding_waste(made.batch(rows) for rows in made.epoch(0))
    assert packer().padding(10**9, 256) == pytest.approx(waste)
    assert packer().padding(1, 256) > packer().padding(50, 256) > waste


def test_the_packer_says_its_shares_and_loads_nothing():
    self_contained(packer, 50_000)
    assert f"random {packer().padding(1, 256):.0%}" in packer().alt
    with pytest.raises(ValueError, match="smallest budget, 16"):
        packer(budgets=(16, 64, 16))
