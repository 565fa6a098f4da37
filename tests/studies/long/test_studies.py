"""The recorded studies of chapters 23 and 24: complete, and true to what they say."""

import pytest
import torch

from transformer.recipes.record import read_record
from transformer_book.studies.memory import half_precision
from transformer_book.studies.record import STUDIES
from transformer_book.studies.sparse import hops, long_steps, segments, truncation
from transformer_book.studies.sparse.delayed_echo import NOTHING, Echo

MODULES = [half_precision, hops, long_steps, segments, truncation]


@pytest.mark.parametrize("study", MODULES, ids=lambda study: study.__name__.rpartition(".")[2])
def test_no_run_is_missing(study):
    runs = read_record(study.RECORD)["runs"]
    assert study.__name__.removeprefix("transformer_book.studies.") in STUDIES
    assert next(iter(study.missing(runs)), None) is None


def test_a_missing_run_is_made(monkeypatch):
    monkeypatch.setattr(hops, "learn", lambda case, seed: 0.5)
    runs = [run for run, _ in hops.missing([])]
    assert len(runs) == len(hops.CASES) * 10
    ((run, line),) = hops.missing(runs[1:])
    assert run == runs[0] and "0.5" in line


@pytest.mark.parametrize(
    "pattern, layers, far",
    [
        ("window of 8", 1, {*range(8)}),
        ("window of 8", 2, {*range(15)}),
        ("window and stride of 8", 1, {*range(9), 16}),
        ("window and stride of 8", 2, {*range(24), 24}),
    ],
)
def test_chains_of_hops(pattern, layers, far):
    reached = hops.Case(pattern, layers, 24).chains() > 0
    expected = far | ({24} if "stride" in pattern and layers == 1 else set())
    assert {*reached.nonzero().flatten().tolist()} == expected


def test_chains_are_counted():
    chains = hops.Case("window of 8", 3, 21).chains()
    assert chains[[14, 18, 20, 21]].tolist() == [36, 10, 3, 1]
    assert hops.Case("window of 8", 2, 15).chains()[14:].tolist() == [1, 0]


def test_a_frozen_reader_trains_its_output_only(monkeypatch):
    made = []

    class Kept(truncation.RecurrentReader):
        def __init__(self):
            super().__init__()
            made.append((self, {name: w.clone() for name, w in self.named_parameters()}))

    monkeypatch.setattr(truncation, "RecurrentReader", Kept)
    for cut in (truncation.FROZEN, 4):
        truncation.learn(cut, 1e-2, seed=1, steps=2)
        model, before = made[-1]
        moved = {n.split(".")[0] for n, w in model.named_parameters() if not w.equal(before[n])}
        assert moved == ({"output"} if cut == truncation.FROZEN else {"embedding", "gru", "output"})


def gradient(model, cut, tokens, labels):
    model.zero_grad()
    loss = truncation.add_gradient(model, tokens, labels, cut)
    return loss, torch.cat([weight.grad.flatten() for weight in model.parameters()])


def test_a_cut_changes_the_gradient_and_not_the_loss():
    torch.manual_seed(0)
    model = truncation.RecurrentReader(size=8)
    stream = Echo(2).draw(3, 12, torch.Generator().manual_seed(0))
    whole, uncut = (gradient(model, cut, *stream) for cut in (None, 12))
    cut = gradient(model, 5, *stream)
    assert torch.equal(whole[1], uncut[1]) and cut[0] == pytest.approx(whole[0], rel=1e-5)
    assert (cut[1] - whole[1]).norm() > 1e-3 * whole[1].norm()


def test_no_gradient_crosses_a_cut():
    torch.manual_seed(0)
    model = truncation.RecurrentReader(size=8)
    tokens = torch.tensor([[1, 2, 2, 3, 3, 3]])
    labels = torch.full((1, 6), NOTHING)
    labels[0, -1] = 0
    for cut, passes in ((6, True), (5, False)):
        model.zero_grad()
        truncation.add_gradient(model, tokens, labels, cut)
        assert bool(model.embedding.weight.grad[1].any()) == passes
