"""Greedy and beam search against searches that are too simple to be wrong."""

import itertools
import math

import numpy as np
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
from transformer.inference.stepwise import evaluation_mode, length_limits

PAD, BOS, EOS = 0, 1, 2
PENALTIES = ["gnmt", "fairseq"]
DEFAULT_AND_BOTH = [{}, *(dict(penalty=penalty) for penalty in PENALTIES)]
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
    "length, alpha, value",
    [
        (1, 0.6, 1.0),
        (5, 0.6, 1.358655),
        (10, 0.6, 1.732862),
        (20, 0.6, 2.354362),
        (25, 0.6, 2.626528),
        (50, 0.6, 3.778565),
        (50, 0.3, 1.94385),
        (50, 0.0, 1.0),
    ],
)
def test_length_penalty_is_that_of_gnmt(length, alpha, value):
    assert length_penalty(length, alpha) == pytest.approx(value, abs=1e-5)
    assert length_penalty(torch.tensor([length]), alpha).item() == pytest.approx(value, abs=1e-5)


@pytest.mark.parametrize(
    "length, alpha, value",
    [
        (1, 0.6, 1.0),
        (5, 0.6, 2.6265),
        (50, 0.6, 10.4564),
        (7, 1.0, 7.0),
        (7, 0.0, 1.0),
        (4, -0.5, 0.5),
    ],
)
def test_length_penalty_of_fairseq(length, alpha, value):
    assert length_penalty(length, alpha, "fairseq") == pytest.approx(value, abs=5e-5)
    tensor = length_penalty(torch.tensor([length]), alpha, "fairseq")
    assert tensor.item() == pytest.approx(value, abs=5e-5)


@pytest.mark.parametrize("alpha", [10.0, 1e-6, -1e-6, -10.0])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_penalty_is_monotone_in_float32_too(alpha, penalty):
    """What ends a search looks at the two ends of the table only."""
    table = length_penalty(torch.arange(1, 1100), alpha, penalty)
    assert table.isfinite().all() and (table.diff() * math.copysign(1.0, alpha) >= 0).all()


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("beam_size", [1, 4])
def test_the_score_counts_eos(table_model, pad_rows, beam_size, penalty):
    options = dict(alpha=0.6, penalty=penalty)
    for best in beam_search(table_model(9, seed=0), pad_rows(SOURCES), beam_size, **options):
        expected = best.log_probability / divisor(len(best.tokens) + 1, 0.6, penalty)
        assert best.score == pytest.approx(expected, rel=1e-5)


def test_gnmt_is_the_default(table_model, pad_rows):
    model, source = table_model(9, seed=0), pad_rows(SOURCES)
    default, *both = (beam_search(model, source, 3, 3.0, **o) for o in DEFAULT_AND_BOTH)
    assert default == both[0] != both[1]


# ------------------------------------------------------------------ what is found


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0, -1.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_wide_beam_finds_the_best_of_all_sequences(table_model, pad_rows, seed, alpha, penalty):
    model = table_model(6, seed, scale=1.0)  # three words, at most four of them: 121 endings
    found = beam_search(model, pad_rows(SOURCES[:3]), 90, alpha, max_length=5, penalty=penalty)
    for source, best in zip(SOURCES, found, strict=False):
        score, tokens = exhaustive(model, tuple(source), alpha, 5, penalty)
        assert best.tokens == tokens
        assert best.score == pytest.approx(score, abs=1e-5)


@settings(max_examples=150, deadline=None)
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


@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_late_winner_is_waited_for(table_model, pad_rows, penalty):
    """It trails until the length penalty of its last tokens, which cost nothing, pays off."""

    class LateWinner(table_model):
        def logits(self, source, prefix):
            logits = np.full(5, -30.0, dtype=np.float32)
            if not prefix:
                logits[[EOS, 3]] = np.log([0.55, 0.45])
            else:
                logits[EOS if len(prefix) == 9 else 3] = 0.0
            return logits

    model, source = LateWinner(5, seed=0), pad_rows([[3, EOS]])
    best = beam_search(model, source, 2, alpha=0.6, penalty=penalty)[0]
    assert best.tokens == [3] * 9
    assert best.score == pytest.approx(math.log(0.45) / divisor(10, 0.6, penalty), abs=1e-4)
    assert best.score > math.log(0.55)  # the score of the empty translation, found at once


def test_it_does_stop_early(table_model, pad_rows):
    model = table_model(9, seed=3, eos_bonus=4.0)
    beam_search(model, pad_rows(SOURCES), alpha=0.6)
    assert len(model.rows_seen) < 30  # the longest sentence might have had 55 steps


@pytest.mark.parametrize("alpha", [-1.0, 0.0, 0.6, 5.0])
def test_a_beam_of_one_is_greedy_search(table_model, pad_rows, alpha):
    model, source = table_model(9, seed=1), pad_rows(SOURCES)
    greedy = greedy_search(model, source)
    for one, best in zip(greedy, beam_search(model, source, 1, alpha), strict=True):
        assert (one.tokens, one.log_probability) == (best.tokens, best.log_probability)
        length = len(one.tokens) + one.finished
        assert best.score == pytest.approx(one.log_probability / divisor(length, alpha))
    assert beam_search(model, source, 1, alpha, n_best=1)[0][0].tokens == greedy[0].tokens


def test_greedy_takes_the_most_probable_token_each_time(table_model, pad_rows):
    model = table_model(9, seed=2)
    for source, best in zip(SOURCES, greedy_search(model, pad_rows(SOURCES)), strict=True):
        produced, total = (*best.tokens, *[EOS] * best.finished), 0.0
        for i, token in enumerate(produced):
            step = model.log_probabilities(tuple(source), produced[:i])
            assert token == step[2:].argmax() + 2
            total += step[token]
        assert best.log_probability == pytest.approx(total, abs=1e-4)


def test_ties_go_to_the_lower_id(table_model, pad_rows):
    model = table_model(6, seed=0, scale=0.0)  # all tokens equally probable
    source = pad_rows([[3, EOS]])
    assert greedy_search(model, source)[0].tokens == []
    found = beam_search(model, source, beam_size=3, alpha=0.0, max_length=3, n_best=3)[0]
    assert [best.tokens for best in found] == [[], [3], [4]]


def test_n_best_are_different_and_in_order(table_model, pad_rows):
    model, source = table_model(9, seed=5), pad_rows(SOURCES)
    lists = beam_search(model, source, beam_size=5, n_best=5)
    single = beam_search(model, source, beam_size=5)
    for found, best in zip(lists, single, strict=True):
        assert len({tuple(h.tokens) for h in found}) == 5
        assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
        assert found[0] == best


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
        # Their probability is lost, not shared out: that is the model's own opinion.
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


@pytest.mark.parametrize("max_length", [1, 2, 7])
def test_eos_may_be_the_last_token_that_fits(table_model, pad_rows, max_length):
    class EndsAt(table_model):
        def logits(self, source, prefix):
            logits = super().logits(source, prefix)
            logits[EOS] = 50.0 if len(prefix) == max_length - 1 else -50.0
            return logits

    model, source = EndsAt(9, seed=0), pad_rows(SOURCES)
    for search in (greedy_search, beam_search):
        for best in search(model, source, max_length=max_length):
            assert best.finished and len(best.tokens) == max_length - 1
    if max_length > 1:
        shorter = greedy_search(model, source, max_length=max_length - 1)
        assert not any(best.finished for best in shorter)


def test_a_finished_hypothesis_goes_before_an_unfinished_one(table_model, pad_rows):
    """However unlikely it is: what was cut off is no translation."""

    class LateRegret(table_model):
        def logits(self, source, prefix):
            logits = super().logits(source, prefix)
            logits[3] = 5.0
            logits[EOS] = -6.0 if prefix == () else -math.inf
            return logits

    model = LateRegret(4, seed=0)  # one word only, so that EOS is among the candidates
    found = beam_search(model, pad_rows([[3, EOS]]), 2, max_length=4, n_best=2)[0]
    assert [best.tokens for best in found] == [[], [3, 3, 3, 3]]
    assert [best.finished for best in found] == [True, False]
    assert found[0].score < found[1].score


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


@settings(max_examples=40, deadline=None)
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
    assert len({tuple(best.tokens) for best in cached}) > 1  # the model does look at the source


@pytest.mark.parametrize("beam_size", [1, 3])
def test_log_probability_is_that_of_teacher_forcing(small_transformer, pad_rows, beam_size):
    model = small_transformer(seed=1)
    for source, best in zip(REAL, beam_search(model, pad_rows(REAL), beam_size), strict=True):
        labels = best.tokens + [EOS] * best.finished
        with torch.no_grad(), evaluation_mode(model):
            logits = model(torch.tensor([source]), torch.tensor([[BOS, *labels[:-1]]]))[0]
        total = logits.log_softmax(-1)[range(len(labels)), labels].sum().item()
        assert best.log_probability == pytest.approx(total, abs=1e-3)


def test_the_real_model_gives_the_same_alone_and_in_a_batch(small_transformer, pad_rows):
    model = small_transformer(seed=2)
    together = beam_search(model, pad_rows(REAL, extra=4))
    backwards = beam_search(model, pad_rows(REAL[::-1]))[::-1]
    alone = [beam_search(model, torch.tensor([source]))[0] for source in REAL]
    assert all(map(same, together, alone)) and all(map(same, backwards, alone))


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


def test_learned_positions_end_where_the_table_ends(small_transformer, pad_rows):
    model = small_transformer(positions="learned", max_length=20)
    assert length_limits(model, pad_rows(REAL), None).tolist() == [20] * 4
    assert all(len(best.tokens) <= 20 for best in beam_search(model, pad_rows(REAL)))
    with pytest.raises(ValueError, match="max_length 21"):
        greedy_search(model, pad_rows(REAL), max_length=21)


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(beam_size=0), "beam_size must be at least 1, got 0"),
        (dict(alpha=math.nan), "alpha must be"),
        (dict(alpha=math.inf), "alpha must be"),
        (dict(max_length=0), "max_length must be at least 1, got 0"),
        (dict(beam_size=1, max_length=-3), "max_length must be at least 1, got -3"),
        (dict(n_best=0), "n_best must be from 1 to beam_size = 4, got 0"),
        (dict(n_best=5), "n_best must be from 1 to beam_size = 4, got 5"),
        (dict(penalty="wu"), r"penalty must be one of \('gnmt', 'fairseq'\), got 'wu'"),
        (dict(penalty="", beam_size=1), "penalty must be one of .*, got ''"),
    ],
)
def test_options_out_of_range(table_model, pad_rows, options, message, monkeypatch):
    monkeypatch.setattr("jaxtyping.config.jaxtyping_disable", True)
    with pytest.raises(ValueError, match=message):
        beam_search(table_model(9, seed=0), pad_rows(SOURCES), **options)


def test_unknown_penalty(monkeypatch):
    monkeypatch.setattr("jaxtyping.config.jaxtyping_disable", True)
    with pytest.raises(ValueError, match="kind must be one of .*, got 'GNMT'"):
        length_penalty(5, 0.6, "GNMT")


@pytest.mark.parametrize(
    "source, message",
    [
        (torch.zeros(0, 4, dtype=torch.long), "at least one token"),
        (torch.zeros(3, 0, dtype=torch.long), "at least one token"),
        (torch.tensor([[3, EOS], [PAD, PAD]]), r"rows \[1\] are padding"),
        (torch.tensor([[3, 9, EOS]]), r"0\.\.8, got 2\.\.9"),
        (torch.tensor([[-1, 3, EOS]]), r"0\.\.8, got -1\.\.3"),
        (torch.tensor([3, EOS]), r"shape \(B, S\), got torch.int64 of \(2,\)"),
        (torch.tensor([[3.0, 2.0]]), r"shape \(B, S\), got torch.float32"),
    ],
)
def test_bad_sources(table_model, source, message):
    with pytest.raises(ValueError, match=message):
        length_limits(table_model(9, seed=0), source, None)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_logits_that_are_not_numbers(table_model, pad_rows, value):
    class Broken(table_model):
        def logits(self, source, prefix):
            return super().logits(source, prefix) * 0 + value

    for search in (greedy_search, beam_search):
        with pytest.raises(ValueError, match="not finite"):
            search(Broken(9, seed=0), pad_rows(SOURCES))
