"""Wrappers have the parts that their names say; measures are those of vectors made by hand."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.self_contained import self_contained
from transformer.recipes.record import read_record
from transformer_book.studies.residuals.depth import (
    DEEPEST,
    KINDS,
    RECORD,
    SEEDS,
    Kind,
    Start,
    Wrapper,
    closest,
    gradients,
    level,
    likeness,
    probe,
    recognised,
    size,
    start,
    stream,
    untrained,
)
from transformer_book.studies.residuals.depth_explorer import DepthExplorer


def begun(tokens=5):
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(1, tokens, 256, generator=generator)
    table = torch.randn(11, 256, generator=generator) / 16
    return Start(["x"] * tokens, torch.arange(tokens)[None], vectors, table)


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("place", ["none", "post", "pre"])
def test_the_wrapper_by_hand(residual, place):
    def normal(x):
        mean, variance = x.mean(-1, keepdim=True), x.var(-1, correction=0, keepdim=True)
        return (x - mean) / (variance + 1e-6).sqrt()

    x = torch.randn(2, 3, 8)
    y = 3 * (normal(x) if place == "pre" else x) - torch.arange(8)
    y = y + 2 * x if residual else y
    y = normal(y) if place == "post" else y
    wrapper = Wrapper(8, Kind(residual, place), alpha=2.0)
    torch.testing.assert_close(wrapper(x, lambda x: 3 * x - torch.arange(8)), y)


def test_a_seed_draws_the_same_matrices_for_every_kind():
    one, other = (nn.ModuleList(untrained(KINDS[name], 3, layers=2)).state_dict()
                  for name in ("post-norm", "neither"))  # fmt: skip
    assert one.keys() == other.keys() and all(torch.equal(one[n], other[n]) for n in one)
    assert len(untrained(KINDS["pre-norm"], 3, layers=4)) == 4


def test_the_measures_on_vectors_that_we_know():
    x = torch.tensor([[[3.0, 0, 0], [0, 3, 0], [0, 0, 3]]])
    assert likeness(x) == pytest.approx(0) and likeness(torch.ones(1, 3, 4)) == pytest.approx(1)
    assert size(x) == pytest.approx(3**0.5)
    mixed = x + torch.tensor([[[0.0, 9, 0], [0, 0, 0], [1, 0, 0]]])
    assert closest(mixed, x).tolist() == [1, 1, 2]
    assert recognised(mixed, x) == pytest.approx(2 / 3)
    assert level([[1.0, 100.0], [100.0, 1.0]]) == pytest.approx([10, 10])


def test_gradients_are_those_of_naming_the_tokens():
    start, kind = begun(), KINDS["pre-norm"]
    layers = untrained(kind, 1, layers=2)
    with torch.enable_grad():
        last = stream(layers, start.vectors)[-1]
        found = gradients(layers, last, start, kind)
        logits = nn.functional.layer_norm(last, (256,), eps=1e-6)[0] @ start.table.T
        nn.functional.cross_entropy(logits, start.ids[0]).backward()
    for norm, layer in zip(found, layers, strict=True):
        squares = sum(p.grad.pow(2).sum() for p in layer.parameters() if p.ndim == 2)
        assert norm == pytest.approx(squares.sqrt().item(), rel=1e-4)


def test_a_probe_has_a_number_per_layer_and_a_row_of_gradients_per_depth():
    found = probe(begun(), KINDS["post-norm"], 1, depths=(1, 3))
    assert len(found.size) == len(found.likeness) == DEEPEST + 1
    assert found.recognised[0] == 1 and found.size[5] == pytest.approx(1, abs=1e-3)
    assert [len(row) for row in found.gradients] == [1, 3]


def test_the_record_is_whole_and_says_what_the_chapter_says():
    record = read_record(RECORD)
    for init in ("fused", "separate"):
        for name in KINDS:
            for part in ("size", "likeness", "recognised"):
                shape = np.shape(record["found"][init][name][part])
                assert shape == (len(SEEDS), DEEPEST + 1)
    fused = record["found"]["fused"]
    for name in KINDS:
        assert [len(row) for row in fused[name]["gradients"]] == list(range(1, DEEPEST + 1))
    last = {name: np.array(fused[name]["recognised"])[:, -1] for name in KINDS}
    assert last["post-norm"].max() < 0.15 and last["pre-norm"].min() > 0.85
    assert np.max(fused["neither"]["first"], axis=0)[-1] < 1e-5
    assert np.min(fused["post-norm"]["first"], axis=0)[-1] > 1


def test_a_recorded_probe_comes_out_again():
    found = probe(start(), KINDS["post-norm"], SEEDS[0], depths=(2,))
    recorded = read_record(RECORD)["found"]["fused"]["post-norm"]
    assert np.allclose(found.likeness, recorded["likeness"][0], atol=1e-3)
    assert np.allclose(found.size, recorded["size"][0], rtol=1e-3)
    assert found.gradients[0][0] == pytest.approx(recorded["first"][0][1], rel=1e-2)


def test_the_explorer_carries_the_record_and_loads_nothing():
    record = read_record(RECORD)
    explorer = DepthExplorer(record["found"]["fused"], record["tokens"], layers=6)
    payload = explorer.payload()
    assert {(kind["residual"], kind["place"]) for kind in payload["kinds"]} == {
        (residual, place) for residual in (True, False) for place in (0, 1, 2)
    }
    pre = next(kind for kind in payload["kinds"] if kind["name"] == "pre-norm")
    expected = np.mean(record["found"]["fused"]["pre-norm"]["likeness"], axis=0)
    assert np.allclose(pre["likeness"], expected, atol=1e-3)
    self_contained(lambda: explorer, 150_000)
    with pytest.raises(ValueError, match=r"1\.\.24"):
        DepthExplorer(record["found"]["fused"], record["tokens"], layers=25)
    with pytest.raises(ValueError, match="are missing"):
        DepthExplorer({"post-norm": record["found"]["fused"]["post-norm"]}, [])
