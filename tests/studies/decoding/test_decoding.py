"""The trace of a beam search agrees with the search, and with an exhaustive one."""

import itertools

import pytest
import torch

from transformer.inference.decoding import beam_search, length_penalty
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer_book.studies.decoding.trace import (
    SearchTrace,
    exact_search,
    log_probabilities,
    trace_search,
)

PAD, BOS, EOS = 0, 1, 2
PENALTIES = [(0.0, "gnmt"), (0.6, "gnmt"), (2.0, "gnmt"), (-1.0, "gnmt"), (0.6, "fairseq")]
SOURCE = torch.tensor([[5, 3, 4, EOS, PAD], [4, EOS, PAD, PAD, PAD], [3, 3, 5, 4, EOS]])


def make_model(seed, vocab_size=6):
    """Random weights, sharp enough that the searches differ, with a liking for the end."""
    torch.manual_seed(seed)
    sizes = dict(d_model=16, d_ff=32, num_heads=2, num_layers=1, dropout=0.5, sharing="none")
    model = Transformer(TransformerConfig(vocab_size=vocab_size, **sizes))
    with torch.no_grad():
        weight = model.output_weight.mul_(4.0)
        norm = model.decoder[-1].feed_forward_residual.norm
        norm.bias.copy_(1.5 * weight[EOS] / weight[EOS].square().sum())  # + 1.5 on its logit
    return model


def everything(model, max_length):
    """All translations of three words that fit, with their log-probabilities by sentence."""
    words = range(EOS + 1, model.config.vocab_size)
    texts = [list(t) for n in range(max_length) for t in itertools.product(words, repeat=n)]
    totals = [log_probabilities(model, row.repeat(len(texts), 1), texts) for row in SOURCE]
    return texts, totals


@pytest.mark.parametrize("beam_size", [1, 2, 3, 7])
@pytest.mark.parametrize("seed", range(4))
def test_one_trace_gives_the_result_of_the_search_for_every_penalty(seed, beam_size):
    model = make_model(seed, vocab_size=12)
    model.train()
    traces = trace_search(model, SOURCE, beam_size, PENALTIES, max_length=9)
    assert model.training
    for alpha, penalty in PENALTIES:
        found = beam_search(model, SOURCE, beam_size, alpha, 9, penalty=penalty)
        for trace, best in zip(traces, found, strict=True):
            ours = trace.best(alpha, penalty)
            assert (ours.tokens, ours.finished) == (best.tokens, best.finished)
            assert ours.score == pytest.approx(best.score, abs=1e-4)
            assert ours.log_probability == pytest.approx(best.log_probability, abs=1e-4)


def test_the_usual_rules_to_stop():
    endings = [([], -4.0), ([3, 4], -2.0), ([3, 3], -3.0), ([3, 4, 5], -2.5)]
    leading = [False, False, True, False]
    trace = SearchTrace(2, 9, endings=endings, alive=[-0.5, -1.0, -2.2, -2.4], leading=leading)
    assert trace.first_full() == 3 and trace.first_leading() == 3
    assert trace.best(0.0).tokens == [3, 4]
    assert trace.best(0.0, steps=1).tokens == [] and trace.best(0.0, steps=0) is None
    assert trace.best(2.0).tokens == [3, 4, 5]  # -2.5 / 2.25 against -2 / 1.78
    assert trace.best(2.0, steps=trace.first_full()).tokens == [3, 4]


@pytest.mark.parametrize("alpha, penalty", PENALTIES)
@pytest.mark.parametrize("seed", range(4))
def test_what_is_proven_is_the_best_of_everything(seed, alpha, penalty):
    model = make_model(seed)
    texts, totals = everything(model, max_length=5)
    found = exact_search(model, SOURCE, alpha, penalty, max_length=5, beam_size=1, widest=64)
    lengths = torch.tensor([len(text) + 1 for text in texts])
    for trace, total in zip(found, totals, strict=True):
        assert trace.proven(alpha, penalty)
        scores = total / length_penalty(lengths, alpha, penalty)
        assert trace.best(alpha, penalty).tokens == texts[scores.argmax()]


@pytest.mark.parametrize("alpha, penalty", PENALTIES)
@pytest.mark.parametrize("beam_size", [1, 2])
def test_a_narrow_beam_is_not_called_exact_where_it_is_not(beam_size, alpha, penalty):
    missed = proven = 0
    for seed in range(8):
        model = make_model(seed, vocab_size=8)
        texts, totals = everything(model, max_length=4)
        lengths = torch.tensor([len(text) + 1 for text in texts])
        traces = trace_search(model, SOURCE, beam_size, [], max_length=4)
        for trace, total in zip(traces, totals, strict=True):
            scores = total / length_penalty(lengths, alpha, penalty)
            best = trace.best(alpha, penalty)
            wrong = best.tokens != texts[scores.argmax()]
            sure = trace.proven(alpha, penalty)
            assert not (wrong and sure)
            missed, proven = missed + wrong, proven + sure
    assert missed > 0 and proven > 0
