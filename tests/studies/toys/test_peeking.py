"""A decoder with a wrong mask leaks exactly as far as it was told to."""

import pytest
import torch

from transformer.inference.decoding import beam_search, greedy_search
from transformer.model.transformer import Transformer
from transformer_book.studies.masks.influence import influence
from transformer_book.studies.masks.peeking import PeekingTransformer
from transformer_book.studies.toy import REVERSE, toy_config

CONFIG = toy_config(REVERSE, d_model=16, d_ff=16, num_layers=2)
SOURCE = torch.tensor([[3, 4, 5, 2]])
TARGET = torch.tensor([[1, 5, 4, 3]])


def make(future: int, config=CONFIG) -> PeekingTransformer:
    torch.manual_seed(0)
    return PeekingTransformer(config, future).eval()


@pytest.fixture
def usual() -> Transformer:
    torch.manual_seed(0)
    return Transformer(CONFIG).eval()


def test_no_future_is_the_transformer(usual):
    pairs, peeking = REVERSE.batch(8, seed=0), make(0)
    ours, theirs = (m(pairs.source, pairs.target_input) for m in (peeking, usual))
    real = pairs.labels != 0
    torch.testing.assert_close(ours[real], theirs[real])
    for search, size in ((greedy_search, 6), (beam_search, 3)):
        tokens = [[h.tokens for h in search(m, pairs.source, size)] for m in (peeking, usual)]
        assert tokens[0] == tokens[1]


@pytest.mark.parametrize(
    "future, rows",
    [(-1, ["000", "100", "110"]), (0, ["100", "110", "110"]), (1, ["110", "110", "110"])],
)
def test_the_mask_by_hand(future, rows):
    mask = make(future).target_mask(torch.tensor([[1, 5, 0]]))[0, 0]
    assert ["".join(str(int(cell)) for cell in row) for row in mask] == rows


@pytest.mark.parametrize("future", [0, 1, 4])
def test_influence_shows_how_far_the_mask_reaches(future):
    # One layer: two layers of a mask that is off by one reach two positions ahead.
    model = make(future, toy_config(REVERSE, d_model=16, d_ff=16))
    to_target, to_source = influence(model, SOURCE, TARGET)
    may = torch.ones(4, 4, dtype=torch.bool).tril(future)
    assert (to_target[~may] == 0).all() and (to_target[may] > 1e-6).all()
    assert to_source.shape == (4, 4) and (to_source > 1e-6).all()


def test_influence_is_the_norm_of_the_jacobian(usual):
    """By finite differences in one embedded token, in double precision."""
    model, step = usual.double(), 1e-5
    columns = []
    for component in range(16):

        def push(module, inputs, output, component=component):
            # The target's embedding alone: the source is one token shorter in this test.
            if output.size(1) == 4:
                output[0, 2, component] += step
            return output

        hook = model.embedding.register_forward_hook(push)
        with torch.no_grad():
            pushed = model(SOURCE[:, :3], TARGET)[0]
        hook.remove()
        columns.append((pushed - model(SOURCE[:, :3], TARGET)[0]) / step)
    expected = torch.stack(columns).pow(2).sum(dim=(0, 2)).sqrt()
    to_target, _ = influence(model, SOURCE[:, :3], TARGET)
    torch.testing.assert_close(to_target[:, 2], expected, rtol=1e-3, atol=1e-6)
    assert not model.embedding._forward_hooks
