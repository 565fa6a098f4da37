"""Greedy and beam search, compared with searches that are too simple to be wrong."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer.inference.decoding import (
    Hypothesis,
    beam_search,
    greedy_search,
    length_penalty,
)
from transformer.inference.stepwise import length_limits
from transformer.model.base import evaluation_mode

pytestmark = pytest.mark.usefixtures("unchecked")
PAD, BOS, EOS = 0, 1, 2
PENALTIES = ["gnmt", "fairseq"]
SOURCES = [[5, 3, 4, EOS], [4, EOS], [3, 3, 5, 4, 3, EOS], [5, EOS], [6, 4, EOS]]


def divisor(length: int, alpha: float, penalty: str = "gnmt") -> float:
    return {"gnmt": (5 + length) / 6, "fairseq": length}[penalty] ** alpha


def exhaustive(model, source, alpha, max_length, penalty):
    """The best finished translation among all there are: (score, tokens)."""
    words = [t for t in range(model.config.vocab_size) if t not in (PAD, BOS, EOS)]
    best = (-math.inf, None)
    for length in range(max_length):
        for tokens in itertools.product(words, repeat=length):
            total = sum(
                model.log_probabilities(source, tokens[:i])[token]
                for i, token in enumerate((*tokens, EOS))
            )
            best = max(best, (total / divisor(length + 1, alpha, penalty), list(tokens)))
    return best


def plain_beam(model, source, beam_size, alpha, max_length, wanted, penalty):
    """Beam search of one sentence with Python lists, which never stops early."""
    alive, finished = [(0.0, ())], []
    for length in range(1, max_length + 1):
        candidates = []
        for total, prefix in alive:
            step = model.log_probabilities(source, prefix)
            candidates += [
                (total + step[t], (*prefix, t))
                for t in range(model.config.vocab_size)
                if t not in (PAD, BOS)
            ]
        candidates = sorted(candidates, reverse=True)[: 2 * beam_size]
        lp = divisor(length, alpha, penalty)
        ended = [(s / lp, s, p) for s, p in candidates if p[-1] == EOS]
        finished = sorted(finished + ended, reverse=True)[:beam_size]
        alive = [c for c in candidates if c[1][-1] != EOS][:beam_size]
    best = [Hypothesis(list(p[:-1]), s, score) for score, s, p in finished]
    lp = divisor(max_length, alpha, penalty)
    best += [Hypothesis(list(p), s, s / lp, False) for s, p in alive]
    return best[:wanted]


def same(ours: Hypothesis, theirs: Hypothesis) -> bool:
    return (
        (ours.tokens, ours.finished) == (theirs.tokens, theirs.finished)
        and ours.log_probability == pytest.approx(theirs.log_probability, abs=1e-4)
        and ours.score == pytest.approx(theirs.score, rel=1e-4, abs=1e-4)
    )


# ------------------------------------------------------------------ the length penalty


@pytest.mark.parametrize(
    "length, alpha, kind, value",
    [
        (1, 0.6, "gnmt", 1.0),
        (10, 0.6, "gnmt", 1.732862),
        (50, 0.6, "gnmt", 3.778565),
        (50, 0.3, "gnmt", 1.94385),
        (50, 0.0, "gnmt", 1.0),
        (1, 0.6, "fairseq", 1.0),
        (50, 0.6, "fairseq", 10.456396),
        (7, 1.0, "fairseq", 7.0),
        (4, -0.5, "fairseq", 0.5),
    ],
)
def test_length_penalty_by_hand(length, alpha, kind, value):
    assert length_penalty(length, alpha, kind) == pytest.approx(value, abs=1e-5)
    assert length_penalty(torch.tensor([length]), alpha, kind).item() == pytest.approx(
        value, abs=1e-5
    )
    if kind == "gnmt":
        assert length_penalty(length, alpha) == length_penalty(length, alpha, kind)


@pytest.mark.parametrize("alpha", [10.0, 1e-6, -1e-6, -10.0])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_penalty_is_monotone_in_float32_too(alpha, penalty):
    """The bound that ends a search uses the two ends of the table only."""
    table = length_penalty(torch.arange(1, 1100), alpha, penalty)
    assert table.isfinite().all() and (table.diff() * math.copysign(1.0, alpha) >= 0).all()


# ------------------------------------------------------------------ what is found


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0, -1.0])
@pytest.mark.parametrize("seed", range(2))
def test_a_wide_beam_finds_the_best_of_all_sequences(table_model, pad_rows, seed, alpha, penalty):
    model = table_model(6, seed, scale=1.0)  # three words, at most four of them: 121 endings
    found = beam_search(model, pad_rows(SOURCES[:3]), 90, alpha, max_length=5, penalty=penalty)
    for source, best in zip(SOURCES, found, strict=False):
        score, tokens = exhaustive(model, tuple(source), alpha, 5, penalty)
        assert best.tokens == tokens
        assert best.score == pytest.approx(score, abs=1e-5)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    vocab_size=st.integers(4, 14),
    beam_size=st.integers(2, 6),
    alpha=st.sampled_from([-2.0, -0.5, 0.0, 0.3, 0.6, 1.0, 3.0]),
    max_length=st.integers(1, 9),
    eos_bonus=st.sampled_from([-3.0, 0.0, 2.0]),
    penalty=st.sampled_from(PENALTIES),
    data=st.data(),
)
def test_stopping_early_changes_nothing(
    table_model, pad_rows, seed, vocab_size, beam_size, alpha, max_length, eos_bonus, penalty, data
):
    n_best = data.draw(st.integers(1, beam_size))
    model = table_model(vocab_size, seed, eos_bonus=eos_bonus)
    sources = [[3, EOS], [3, 3, EOS], [3, 3, 3, 3, EOS]]
    options = beam_size, alpha, max_length, n_best, penalty
    found = beam_search(model, pad_rows(sources), *options)
    for source, ours in zip(sources, found, strict=True):
        theirs = plain_beam(model, tuple(source), *options)
        assert len(ours) == len(theirs)
        assert all(map(same, ours, theirs)), (ours, theirs)


@pytest.mark.parametrize("alpha", [-1.0, 0.0, 0.6, 5.0])
def test_a_beam_of_one_is_greedy_search(table_model, pad_rows, alpha):
    model, source = table_model(9, seed=1), pad_rows(SOURCES)
    greedy = greedy_search(model, source)
    for one, best in zip(greedy, beam_search(model, source, 1, alpha), strict=True):
        assert (one.tokens, one.log_probability) == (best.tokens, best.log_probability)
        length = len(one.tokens) + one.finished
        assert best.score == pytest.approx(one.log_probability / divisor(length, alpha))
    assert beam_search(model, source, 1, alpha, n_best=1)[0][0].tokens == greedy[0].tokens


# ------------------------------------------------------------------ EOS and the maximum length


def test_padding_and_bos_are_never_produced(table_model, pad_rows):
    class Tempted(table_model):
        def logits(self, source, prefix):
            logits = super().logits(source, prefix)
            logits[[PAD, BOS]] += 8.0
            return logits

    model, source = Tempted(9, seed=0), pad_rows(SOURCES)
    for best in [*greedy_search(model, source, 9), *beam_search(model, source, max_length=9)]:
        assert not {PAD, BOS, EOS} & set(best.tokens)
        # Their probability is lost, not redistributed.
        assert best.log_probability < -3.0 * len(best.tokens)


def test_the_maximum_is_the_real_source_length_plus_50_for_each_sentence(table_model, pad_rows):
    model = table_model(9, seed=0, eos_bonus=-1e4)
    source = pad_rows(SOURCES, extra=3)
    expected = [53, 51, 55, 51, 52]
    for found in (greedy_search(model, source), beam_search(model, source, 2)):
        assert [len(best.tokens) for best in found] == expected
        assert not any(best.finished for best in found)
        assert all(math.isfinite(best.score) for best in found)
    assert model.rows_seen[-1] == 2 and len(model.rows_seen) == 55 + 55


# ------------------------------------------------------------------ batches


def test_finished_sentences_leave_the_batch(table_model, pad_rows):
    model = table_model(9, seed=4)
    found = greedy_search(model, pad_rows(SOURCES))
    steps = [len(best.tokens) + best.finished for best in found]
    assert len(set(steps)) > 2
    assert model.rows_seen == [sum(s >= t for s in steps) for t in range(1, max(steps) + 1)]

    model.rows_seen.clear()
    beam_search(model, pad_rows(SOURCES), 3)
    assert model.rows_seen[0] == 15 and model.rows_seen[-1] < 15
    assert all(rows % 3 == 0 for rows in model.rows_seen)
    assert model.rows_seen == sorted(model.rows_seen, reverse=True)


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    order=st.permutations(range(len(SOURCES))),
    extra=st.integers(0, 3),
    beam_size=st.integers(1, 4),
)
def test_batch_order_and_padding_do_not_matter(
    table_model, pad_rows, seed, order, extra, beam_size
):
    model = table_model(9, seed)
    alone = [beam_search(model, pad_rows([source]), beam_size)[0] for source in SOURCES]
    together = beam_search(model, pad_rows([SOURCES[i] for i in order], extra), beam_size)
    assert together == [alone[i] for i in order]


# ------------------------------------------------------------------ the real model


REAL = [[5, 9, 13, 4, EOS], [7, EOS], [11, 22, 8, EOS], [3, 3, 3, 3, 3, 3, 17, EOS]]


@pytest.mark.parametrize(
    "changes", [{}, dict(norm="pre"), dict(positions="learned"), dict(num_layers=1, d_k=5, d_v=3)]
)
@pytest.mark.parametrize("beam_size", [1, 4])
def test_the_cache_changes_nothing(small_transformer, without_cache, pad_rows, changes, beam_size):
    model, source = small_transformer(**changes), pad_rows(REAL)
    cached = beam_search(model, source, beam_size)
    plain = beam_search(without_cache(model), source, beam_size)
    assert all(map(same, cached, plain))
    assert len({tuple(best.tokens) for best in cached}) > 1  # they depend on the source


@pytest.mark.parametrize("beam_size", [1, 3])
def test_log_probability_is_that_of_teacher_forcing(small_transformer, pad_rows, beam_size):
    model = small_transformer(seed=1)
    for source, best in zip(REAL, beam_search(model, pad_rows(REAL), beam_size), strict=True):
        labels = best.tokens + [EOS] * best.finished
        with torch.no_grad(), evaluation_mode(model):
            logits = model(torch.tensor([source]), torch.tensor([[BOS, *labels[:-1]]]))[0]
        total = logits.log_softmax(-1)[range(len(labels)), labels].sum().item()
        assert best.log_probability == pytest.approx(total, abs=1e-3)


def test_the_model_is_left_as_it_was(small_transformer, pad_rows):
    """Dropout is off during the search, on again after it, and training goes on."""
    model, source = small_transformer(max_length=8), pad_rows(REAL)  # the table has to grow
    model.train()
    model.encoder[0].eval()
    modes = [module.training for module in model.modules()]
    assert beam_search(model, source) == beam_search(model, source)
    assert [module.training for module in model.modules()] == modes
    loss = model(source, source).logsumexp(-1).sum()
    loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    "options",
    [
        dict(beam_size=0),
        dict(alpha=math.nan),
        dict(max_length=0),
        dict(beam_size=1, max_length=-3),
        dict(n_best=0),
        dict(n_best=5),
        dict(penalty="wu"),
    ],
)
def test_options_out_of_range(table_model, pad_rows, options):
    with pytest.raises(ValueError, match=[*options][-1]):
        beam_search(table_model(9, seed=0), pad_rows(SOURCES), **options)


@pytest.mark.parametrize(
    "source",
    [
        torch.zeros(0, 4, dtype=torch.long),
        torch.zeros(3, 0, dtype=torch.long),
        torch.tensor([[3, EOS], [PAD, PAD]]),
        torch.tensor([[3, 9, EOS]]),
        torch.tensor([[-1, 3, EOS]]),
        torch.tensor([3, EOS]),
        torch.tensor([[3.0, 2.0]]),
        torch.tensor([[3, EOS]], dtype=torch.int16),
    ],
)
def test_bad_sources(table_model, source):
    with pytest.raises(ValueError, match="source"):
        length_limits(table_model(9, seed=0), source, None)
