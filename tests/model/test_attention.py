"""Attention of one head: Eq. (1), its mask, and additive attention."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from transformer.model.attention import (
    AdditiveAttention,
    masked_softmax,
    scaled_dot_product_attention,
)

CUDA = pytest.param(
    "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
)


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


def draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def run(query, key, value, mask, need_weights: bool) -> Tensor:
    result = scaled_dot_product_attention(query, key, value, mask, need_weights=need_weights)
    return result[0] if need_weights else result


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_equals_the_formula_written_with_loops(need_weights, masked):
    query, key, value = draw(5, 3), draw(7, 3, seed=1), draw(7, 4, seed=2)
    mask = draw(5, 7, seed=3) > 0 if masked else None
    if masked:
        mask[2] = False
    expected = attend_with_loops(query, key, value, mask)
    actual = run(query[None], key[None], value[None], mask, need_weights)[0]
    torch.testing.assert_close(actual, expected)


# A mask may have size 1, or no axis at all, wherever it says the same for all.
MASK_SHAPES = ["BHTS", "B1TS", "B11S", "11TS", "TS", "1S", "S", "BHT1", "B111"]


@settings(deadline=None, derandomize=True, max_examples=80)
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
    actual = run(query, key, value, mask, need_weights)
    full = None if mask is None else mask.expand(*query.shape[:3], size["S"])
    expected = F.scaled_dot_product_attention(query, key, value, full)
    if mask is not None:  # PyTorch's own answer for a blind row has changed over time
        expected = torch.where(full.any(-1, keepdim=True), expected, 0.0)
    torch.testing.assert_close(actual, expected)


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("need_weights", [False, True])
def test_a_query_that_may_see_nothing_gives_zeros_and_finite_gradients(need_weights):
    inputs = [draw(2, 4, 3).requires_grad_() for _ in range(3)]
    mask = torch.ones(2, 4, 4, dtype=torch.bool)
    mask[0, 1] = mask[1] = False
    output = run(*inputs, mask, need_weights)
    assert (output[0, 1] == 0).all() and (output[1] == 0).all()
    assert (output[0, 0] != 0).all()
    # Not even on the way back: NaN times a mask's zero would hide one, and anomaly mode would not.
    with torch.autograd.detect_anomaly():
        gradients = torch.autograd.grad(run(*inputs, mask, need_weights).sin().sum(), inputs)
    for gradient in gradients:
        assert gradient.isfinite().all() and (gradient[1] == 0).all() and gradient[0].any()
    assert (gradients[0][0, 1] == 0).all()


def test_weights_are_a_distribution_over_what_may_be_seen():
    query, key, value = draw(2, 5, 3), draw(2, 6, 3, seed=1), draw(2, 6, 4, seed=2)
    mask = draw(2, 5, 6, seed=3) > 0.5
    mask[0, 0] = False
    output, weights = scaled_dot_product_attention(query, key, value, mask, need_weights=True)
    assert weights.shape == (2, 5, 6)
    torch.testing.assert_close(weights.sum(-1), mask.any(-1).double())
    assert (weights[~mask] == 0).all() and (weights[mask] > 0).all()
    torch.testing.assert_close(weights @ value, output)


def test_masked_softmax_without_a_mask_is_softmax():
    scores = draw(2, 3, 4)
    assert torch.equal(masked_softmax(scores), scores.softmax(-1))


@pytest.mark.parametrize("need_weights", [False, True])
def test_what_is_masked_cannot_be_felt(need_weights):
    query, key, value = draw(1, 4, 3), draw(1, 5, 3, seed=1), draw(1, 5, 2, seed=2)
    mask = torch.tensor([True, True, False, True, False])
    before = run(query, key, value, mask, need_weights)
    key[:, ~mask], value[:, ~mask] = 1e3, -1e30
    assert torch.equal(before, run(query, key, value, mask, need_weights))


@pytest.mark.parametrize("need_weights", [False, True])
def test_inputs_and_mask_are_left_as_they_were(need_weights):
    inputs = [draw(1, 3, 4, seed=seed) for seed in range(3)]
    mask = torch.tensor([[True, False, True], [False, False, False], [True, True, True]])
    copies = [x.clone() for x in [*inputs, mask]]
    run(*inputs, mask, need_weights)
    for before, after in zip(copies, [*inputs, mask], strict=True):
        assert torch.equal(before, after)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("need_weights", [False, True])
def test_scale_can_be_chosen(need_weights, masked):
    query, key, value = draw(1, 3, 5), draw(1, 4, 5, seed=1), draw(1, 4, 2, seed=2)
    mask = draw(3, 4, seed=3) > -0.5 if masked else None
    for scale in (1.0, 0.3):
        actual = scaled_dot_product_attention(
            query, key, value, mask, scale=scale, need_weights=need_weights
        )
        actual = actual[0] if need_weights else actual

        def score(q: Tensor, k: Tensor, scale: float = scale) -> float:
            return (q @ k).item() * scale

        expected = attend_with_loops(query[0], key[0], value[0], mask, score)
        torch.testing.assert_close(actual[0], expected)


@pytest.mark.parametrize(
    "d_k, unscaled, scaled, jacobian_unscaled, jacobian_scaled",
    [
        (4, 0.498, 0.308, 0.333, 0.340),
        (64, 0.867, 0.318, 0.160, 0.348),
        (512, 0.955, 0.322, 0.061, 0.348),
    ],
)
def test_scaling_keeps_the_softmax_soft(d_k, unscaled, scaled, jacobian_unscaled, jacobian_scaled):
    """Ten random keys: without the factor, one takes all and the gradient dies."""
    query, key = draw(1500, 1, d_k), draw(1500, 10, d_k, seed=1)
    for scale, largest, norm in [
        (1.0, unscaled, jacobian_unscaled),
        (None, scaled, jacobian_scaled),
    ]:
        _, weights = scaled_dot_product_attention(query, key, key, scale=scale, need_weights=True)
        weights = weights[:, 0]
        assert weights.amax(-1).mean().item() == pytest.approx(largest, abs=0.012)
        jacobian = torch.diag_embed(weights) - weights[:, :, None] * weights[:, None]
        assert jacobian.flatten(1).norm(dim=1).mean().item() == pytest.approx(norm, abs=0.012)


@pytest.mark.parametrize("need_weights", [False, True])
def test_dropout_drops_weights_and_keeps_their_mean(need_weights):
    torch.manual_seed(0)
    ones = torch.ones(1, 3000, 8)
    result = scaled_dot_product_attention(
        ones, ones[:, :8], torch.eye(8)[None], None, 0.25, None, need_weights
    )
    output = result[0] if need_weights else result
    kept = output != 0  # the identity as values makes the output the dropped weights
    assert kept.float().mean().item() == pytest.approx(0.75, abs=0.02)
    torch.testing.assert_close(output[kept], torch.full_like(output[kept], 1 / 8 / 0.75))
    if need_weights:
        torch.testing.assert_close(result[1], torch.full((1, 3000, 8), 1 / 8))


@pytest.mark.parametrize("device", ["cpu", CUDA])
@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize(
    "dtype, tolerance", [(torch.float32, 1e-5), (torch.bfloat16, 0.05), (torch.float16, 0.005)]
)
def test_number_types(dtype, tolerance, need_weights, device):
    inputs = [draw(2, 5, 8, seed=seed).to(dtype) for seed in range(3)]
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    mask[2] = False
    moved = [x.to(device).requires_grad_() for x in inputs]
    output = run(*moved, mask.to(device), need_weights)
    assert output.dtype == dtype
    expected = attend_with_loops(*(x[0].double() for x in inputs), mask)
    torch.testing.assert_close(output[0].double().cpu(), expected, atol=tolerance, rtol=tolerance)
    assert (output[:, 2] == 0).all()
    for gradient in torch.autograd.grad(output.float().sum(), moved):
        assert gradient.isfinite().all()


def test_additive_attention_equals_the_formula_written_with_loops():
    torch.manual_seed(0)
    attention = AdditiveAttention(3, 4, 6).double()
    query, key, value = draw(5, 3), draw(7, 4, seed=1), draw(7, 2, seed=2)
    mask = draw(5, 7, seed=3) > 0
    mask[4] = False

    def score(q: Tensor, k: Tensor) -> float:
        hidden = attention.query_projection.weight @ q + attention.key_projection.weight @ k
        return (attention.score.weight[0] @ hidden.tanh()).item()

    for given_mask in (None, mask):
        expected = attend_with_loops(query, key, value, given_mask, score)
        output, weights = attention(query, key, value, given_mask, need_weights=True)
        torch.testing.assert_close(output, expected)
        torch.testing.assert_close(weights @ value, output)
        assert torch.equal(attention(query, key, value, given_mask), output)


def test_additive_attention_that_may_see_nothing_gives_zeros_and_finite_gradients():
    torch.manual_seed(0)
    attention = AdditiveAttention(3, 3, 6).double()
    x = draw(2, 4, 3).requires_grad_()
    mask = torch.tensor([[[True]], [[False]]])
    output, weights = attention(x, x, x, mask, need_weights=True)
    assert (output[1] == 0).all() and (weights[1] == 0).all() and output[0].all()
    gradients = torch.autograd.grad(output.sin().sum(), [x, *attention.parameters()])
    assert all(gradient.isfinite().all() and gradient.any() for gradient in gradients)
    assert (gradients[0][1] == 0).all()


def test_additive_attention_takes_any_leading_axes():
    torch.manual_seed(0)
    attention = AdditiveAttention(3, 4, 6).double()
    query, key, value = draw(2, 3, 5, 3), draw(2, 3, 7, 4), draw(2, 3, 7, 2)
    output = attention(query, key, value)
    assert output.shape == (2, 3, 5, 2)
    torch.testing.assert_close(output[1, 2], attention(query[1, 2], key[1, 2], value[1, 2]))
