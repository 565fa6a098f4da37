"""Attention of one head: Eq. (1), its mask, and additive attention."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.model.small import draw
from transformer.model.attention import AdditiveAttention, scaled_dot_product_attention

CUDA = pytest.param(
    "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
)
both_paths = pytest.mark.parametrize("need_weights", [False, True])


def attend_with_loops(query, key, value, mask=None, score=None):
    """softmax(scores) V for one sentence, number by number. A blind row gives zeros."""
    score = score or (lambda q, k: (q @ k).item() / math.sqrt(len(q)))
    output = torch.zeros(len(query), value.size(1), dtype=value.dtype)
    for i, q in enumerate(query):
        seen = [j for j in range(len(key)) if mask is None or mask[i, j]]
        exponentials = [math.exp(score(q, key[j])) for j in seen]
        for j, e in zip(seen, exponentials, strict=True):
            output[i] += e / sum(exponentials) * value[j]
    return output


def run(*inputs, need_weights: bool | str, **options) -> Tensor:
    if need_weights == "additive":
        torch.manual_seed(0)
        return AdditiveAttention(3, 3, 6).double()(*inputs)
    result = scaled_dot_product_attention(*inputs, need_weights=need_weights, **options)
    return result[0] if need_weights else result


@both_paths
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("scale", [None, 1.0, 0.3])
def test_equals_the_formula_written_with_loops(need_weights, masked, scale):
    query, key, value = draw(5, 3), draw(7, 3, seed=1), draw(7, 4, seed=2)
    mask = draw(5, 7, seed=3) > 0 if masked else None
    if masked:
        mask[2] = False
    score = None if scale is None else lambda q, k: (q @ k).item() * scale
    expected = attend_with_loops(query, key, value, mask, score)
    inputs = [query[None], key[None], value[None], mask]
    copies = [None if x is None else x.clone() for x in inputs]
    actual = run(*inputs, scale=scale, need_weights=need_weights)[0]
    torch.testing.assert_close(actual, expected)
    _, weights = scaled_dot_product_attention(*inputs, scale=scale, need_weights=True)
    torch.testing.assert_close(weights[0] @ value, expected)
    assert mask is None or ((weights[0] > 0) == mask).all()
    assert all(a is b or torch.equal(a, b) for a, b in zip(inputs, copies, strict=True))


# A mask may have size 1, or no axis at all, wherever it says the same for all.
MASK_SHAPES = ["BHTS", "B1TS", "B11S", "11TS", "TS", "1S", "S", "BHT1", "B111"]


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    sizes=st.tuples(*[st.integers(1, 5)] * 6),
    axes=st.sampled_from([None, *MASK_SHAPES]),
    density=st.sampled_from([0.2, 0.5, 0.9]),
    need_weights=st.booleans(),
)
def test_equals_torch_for_any_shape_and_mask(sizes, axes, density, need_weights):
    size = dict(zip("BHTSkv", sizes, strict=True))
    query = draw(*(size[a] for a in "BHTk"))
    key = draw(*(size[a] for a in "BHSk"), seed=1)
    value = draw(*(size[a] for a in "BHSv"), seed=2)
    mask = None
    if axes is not None:
        mask = torch.rand([size.get(a, 1) for a in axes]) < density
    actual = run(query, key, value, mask, need_weights=need_weights)
    full = None if mask is None else mask.expand(*query.shape[:3], size["S"])
    expected = F.scaled_dot_product_attention(query, key, value, full)
    if mask is not None:  # PyTorch's own answer for a blind row has changed over time
        expected = torch.where(full.any(-1, keepdim=True), expected, 0.0)
    torch.testing.assert_close(actual, expected)


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("need_weights", [False, True, "additive"])
def test_a_blind_row_gives_zeros_and_finite_gradients(need_weights):
    inputs = [draw(2, 4, 3, seed=seed).requires_grad_() for seed in range(3)]
    mask = torch.ones(2, 4, 4, dtype=torch.bool)
    mask[0, 1] = mask[1] = False
    # Anomaly mode sees a NaN in the backward pass that a mask's zero would hide.
    with torch.autograd.detect_anomaly():
        output = run(*inputs, mask, need_weights=need_weights)
        gradients = torch.autograd.grad(output.sin().sum(), inputs)
    assert (output[0, 1] == 0).all() and (output[1] == 0).all() and output[0, 0].all()
    for gradient in gradients:
        assert gradient.isfinite().all() and (gradient[1] == 0).all() and gradient[0].any()
    assert (gradients[0][0, 1] == 0).all()


@both_paths
def test_dropout_drops_weights_and_keeps_their_mean(need_weights):
    torch.manual_seed(0)
    ones = torch.ones(1, 3000, 8)
    inputs = ones, ones[:, :8], torch.eye(8)[None]
    output = run(*inputs, dropout=0.25, need_weights=need_weights)
    kept = output != 0  # the identity as values makes the output the dropped weights
    assert kept.float().mean().item() == pytest.approx(0.75, abs=0.02)
    torch.testing.assert_close(output[kept], torch.full_like(output[kept], 1 / 8 / 0.75))
    _, weights = scaled_dot_product_attention(*inputs, dropout=0.25, need_weights=True)
    torch.testing.assert_close(weights, torch.full((1, 3000, 8), 1 / 8))


@pytest.mark.parametrize("device", ["cpu", CUDA])
@both_paths
@pytest.mark.parametrize(
    "dtype, tolerance", [(torch.float32, 1e-5), (torch.bfloat16, 0.05), (torch.float16, 0.005)]
)
def test_number_types(dtype, tolerance, need_weights, device):
    inputs = [draw(2, 5, 8, seed=seed).to(dtype) for seed in range(3)]
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    mask[2] = False
    moved = [x.to(device).requires_grad_() for x in inputs]
    output = run(*moved, mask.to(device), need_weights=need_weights)
    assert output.dtype == dtype and (output[:, 2] == 0).all()
    expected = attend_with_loops(*(x[0].double() for x in inputs), mask)
    torch.testing.assert_close(output[0].double().cpu(), expected, atol=tolerance, rtol=tolerance)
    for gradient in torch.autograd.grad(output.float().sum(), moved):
        assert gradient.isfinite().all()


@both_paths
def test_scores_may_be_beyond_float16(need_weights):
    query, key, value = torch.full((1, 2, 64), 40.0), torch.full((1, 3, 64), 40.0), draw(1, 3, 4)
    key[:, 1] = 39.0
    inputs = [x.half() for x in (query, key, value)]
    expected = run(*(x.double() for x in inputs), need_weights=need_weights)
    output = run(*inputs, need_weights=need_weights)
    torch.testing.assert_close(output.double(), expected, atol=1e-3, rtol=1e-3)


@both_paths
def test_a_mask_may_not_enlarge_the_scores(need_weights):
    x, mask = draw(2, 4, 8), torch.ones(2, 1, 1, 4, dtype=torch.bool)
    with pytest.raises(RuntimeError):
        run(x, x, x, mask, need_weights=need_weights)


def test_additive_attention_equals_the_formula_written_with_loops():
    torch.manual_seed(0)
    attention = AdditiveAttention(3, 4, 6).double()
    query, key, value = draw(2, 5, 3), draw(2, 7, 4, seed=1), draw(2, 7, 2, seed=2)
    mask = draw(2, 5, 7, seed=3) > 0
    mask[1, 4] = False

    def score(q: Tensor, k: Tensor) -> float:
        hidden = attention.query_projection.weight @ q + attention.key_projection.weight @ k
        return (attention.score.weight[0] @ hidden.tanh()).item()

    for shown in (None, mask):
        masks = [None, None] if shown is None else shown
        rows = zip(query, key, value, masks, strict=True)
        expected = torch.stack([attend_with_loops(*row, score) for row in rows])
        output, weights = attention(query, key, value, shown, need_weights=True)
        torch.testing.assert_close(output, expected)
        torch.testing.assert_close(weights @ value, output)
        assert torch.equal(attention(query, key, value, shown), output)
        further = None if shown is None else shown[None]  # another leading axis
        assert torch.equal(attention(query[None], key[None], value[None], further)[0], output)
