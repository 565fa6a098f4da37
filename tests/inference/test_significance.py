"""Counts of BLEU and chrF and the bootstrap, compared with sacreBLEU's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF

from transformer.inference.significance import (
    bleu_of_counts,
    bootstrap,
    character_counts,
    chrf_of_counts,
    interval,
    paired_bootstrap,
    sentence_counts,
)

WORDS = ["the", "cat", "sat", "on", "a", "mat", ",", "Dog", "dog's", "well-fed", "3.5", "%"]
text = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
pairs = st.lists(st.tuples(text, text), min_size=1, max_size=6)


def score(hypotheses, references, **options):
    counts = sentence_counts(hypotheses, references, **options)
    return float(bleu_of_counts(counts.sum(axis=0)))


@settings(max_examples=60, deadline=None)
@given(pairs, st.sampled_from(["13a", "none", "intl"]), st.booleans())
def test_sums_of_counts_give_sacrebleus_own_score(corpus, tokenize, lowercase):
    """For any text: also empty, too short for 4-grams, or with nothing in common."""
    hypotheses, references = zip(*corpus, strict=True)
    own = BLEU(tokenize=tokenize, lowercase=lowercase, force=True)
    expected = own.corpus_score(hypotheses, [references]).score
    found = score(hypotheses, references, tokenize=tokenize, lowercase=lowercase)
    assert found == pytest.approx(expected, abs=1e-8)


@settings(max_examples=60, deadline=None)
@given(pairs)
def test_sums_of_character_counts_give_sacrebleus_chrf(corpus):
    hypotheses, references = zip(*corpus, strict=True)
    found = chrf_of_counts(character_counts(hypotheses, references).sum(axis=0))
    assert found == pytest.approx(CHRF().corpus_score(hypotheses, [references]).score, abs=1e-8)


def corpus(n, seed=0, errors=0.3):
    generator = np.random.default_rng(seed)
    references = [list(generator.choice(WORDS, 9)) for _ in range(n)]
    hypotheses = [
        [w if generator.random() > errors else generator.choice(WORDS) for w in sentence]
        for sentence in references
    ]
    return [" ".join(h) for h in hypotheses], [" ".join(r) for r in references]


def test_the_bootstrap_is_as_wide_as_sacrebleus():
    hypotheses, references = corpus(200)
    counts = sentence_counts(hypotheses, references)
    own = BLEU().corpus_score(hypotheses, [references], n_bootstrap=1000)
    scores = bootstrap(counts, samples=2000)
    low, high = interval(scores)
    assert np.mean(scores) == pytest.approx(own._mean, abs=0.3)
    assert (high - low) / 2 == pytest.approx(own._ci, rel=0.15)


def test_paired_draws_detect_a_small_difference_that_separate_ones_miss():
    hypotheses, references = corpus(400)
    better = [references[i] if i % 40 == 0 else hypotheses[i] for i in range(400)]
    one, other = (sentence_counts(h, references) for h in (hypotheses, better))
    paired = bootstrap(other, seed=1) - bootstrap(one, seed=1)
    apart = bootstrap(other, seed=1) - bootstrap(one, seed=2)
    assert interval(paired)[0] > 0 > interval(apart)[0]


def test_groups_are_drawn_whole():
    counts = sentence_counts(*corpus(100))
    groups = np.repeat(np.arange(50), 2).tolist()
    merged = counts.reshape(50, 2, -1).sum(axis=1)
    assert np.allclose(bootstrap(counts, groups=groups), bootstrap(merged))
    # Copies of a sentence hold no more information than the sentence itself.
    copies, groups = np.repeat(counts, 4, axis=0), np.repeat(np.arange(100), 4).tolist()
    assert np.std(bootstrap(copies, groups=groups)) > 1.6 * np.std(bootstrap(copies))


@pytest.mark.parametrize(
    "call",
    [
        lambda: sentence_counts(["a"], []),
        lambda: sentence_counts(["a"], ["a"], tokenize="moses"),
        lambda: bootstrap(np.zeros((0, 10), int)),
        lambda: bootstrap(np.ones((2, 10), int), samples=0),
        lambda: bootstrap(np.ones((2, 10), int), groups=[0]),
        lambda: paired_bootstrap([], [np.ones((2, 10), int)]),
        lambda: paired_bootstrap([np.ones((3, 10), int)], [np.ones((2, 10), int)]),
        lambda: interval([1.0], level=1.0),
        lambda: interval([]),
    ],
)
def test_bad_input(call):
    with pytest.raises(ValueError):
        call()
