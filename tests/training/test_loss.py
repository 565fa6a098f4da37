"""Label smoothing in three variants, the loss that never stores the logits, and perplexity."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_training import make_model as make_tiny_model
from tiny_training import make_pairs
from torch import Tensor

from transformer.data.batching import TokenBatches
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer.training.loss import (
    TranslationLoss,
    perplexity,
    projected_cross_entropy,
    smoothed_cross_entropy,
    smoothed_targets,
)

VARIANTS = pytest.mark.parametrize("variant", ["uniform", "others", "others-but-padding"])
LABEL = torch.tensor([2])


def draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def draw_labels(n: int, vocab_size: int) -> Tensor:
    return torch.randint(1, vocab_size, (n,), generator=torch.Generator().manual_seed(9))


# ---------------------------------------------------------------------- smoothed targets


@pytest.mark.parametrize(
    "variant, epsilon, expected",
    [
        ("uniform", 0.1, [0.02, 0.02, 0.92, 0.02, 0.02]),
        ("others", 0.1, [0.025, 0.025, 0.9, 0.025, 0.025]),
        ("others-but-padding", 0.1, [0, 0.1 / 3, 0.9, 0.1 / 3, 0.1 / 3]),
        ("others-but-padding", 0.4, [0, 0.4 / 3, 0.6, 0.4 / 3, 0.4 / 3]),
    ],
)
def test_targets_by_hand(variant, epsilon, expected):
    targets = smoothed_targets(LABEL, 5, epsilon, variant)
    torch.testing.assert_close(targets, torch.tensor([expected]))


# ---------------------------------------------------------------------- the plain definition


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
def test_uniform_smoothing_equals_torch(epsilon):
    logits, labels = 3 * draw(7, 11), draw_labels(7, 11)
    expected = F.cross_entropy(logits, labels, label_smoothing=epsilon, reduction="sum")
    torch.testing.assert_close(smoothed_cross_entropy(logits, labels, epsilon), expected)
    loss, nll = projected_cross_entropy(logits, torch.eye(11), labels, epsilon)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(nll, F.cross_entropy(logits, labels, reduction="sum"))


# ---------------------------------------------------------------------- without the logits


def compare(states, weight, labels, epsilon, variant, pad_id, chunk_size):
    """Check value and gradients of the chunked loss against the plain definition in float64."""
    exact = [x.detach().double().requires_grad_() for x in (states, weight)]
    plain = smoothed_cross_entropy(exact[0] @ exact[1].T, labels, epsilon, variant, pad_id)
    expected = torch.autograd.grad(2.5 * plain, exact)
    inputs = [x.detach().requires_grad_() for x in (states, weight)]
    loss, nll = projected_cross_entropy(*inputs, labels, epsilon, variant, pad_id, chunk_size)
    actual = torch.autograd.grad(2.5 * loss, inputs)
    torch.testing.assert_close(loss.double(), plain, atol=1e-4, rtol=1e-5)
    for mine, theirs in zip(actual, expected, strict=True):
        torch.testing.assert_close(mine.double(), theirs, atol=3e-5, rtol=1e-4)
    bare = F.cross_entropy(exact[0] @ exact[1].T, labels, reduction="sum")
    torch.testing.assert_close(nll.double(), bare, atol=1e-4, rtol=1e-5)
    assert not nll.requires_grad


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    n=st.integers(1, 9),
    d_model=st.integers(1, 6),
    vocab_size=st.integers(4, 12),
    epsilon=st.sampled_from([0.0, 0.1, 0.6]),
    variant=st.sampled_from(["uniform", "others", "others-but-padding"]),
    chunk_size=st.sampled_from([None, 1, 2, 4, 9, 100]),
    pad=st.integers(0, 11),
)
def test_value_and_gradients_equal_the_plain_definition(
    n, d_model, vocab_size, epsilon, variant, chunk_size, pad
):
    pad_id = pad % vocab_size
    labels = (pad_id + draw_labels(n, vocab_size)) % vocab_size  # anything but padding
    compare(
        draw(n, d_model),
        draw(vocab_size, d_model, seed=1),
        labels,
        epsilon,
        variant,
        pad_id,
        chunk_size,
    )


def test_bfloat16_autocast():
    states, weight, labels = draw(50, 16), draw(30, 16, seed=1) / 4, draw_labels(50, 30)
    inputs = [states.requires_grad_(), weight.requires_grad_()]
    exact, exact_nll = projected_cross_entropy(*inputs, labels, 0.1)
    expected = torch.autograd.grad(exact, inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss, nll = projected_cross_entropy(*inputs, labels, 0.1, chunk_size=16)
        plain = smoothed_cross_entropy(F.linear(*inputs).float(), labels, 0.1)
    assert loss.dtype == nll.dtype == torch.float32
    # The products are the same bfloat16 products, so the value is closer than to float32.
    torch.testing.assert_close(loss, plain, rtol=1e-5, atol=1e-3)
    assert not torch.equal(loss, exact)
    torch.testing.assert_close(nll, exact_nll, rtol=0.01, atol=0)
    for mine, theirs in zip(torch.autograd.grad(loss, inputs), expected, strict=True):
        assert mine.dtype == torch.float32
        assert (mine - theirs).norm() < 0.01 * theirs.norm()


def test_float16_keeps_the_small_gradients_of_smoothing():
    """In a large vocabulary, the other tokens have less than float16's smallest normal number."""
    vocab_size = 37_000
    states, weight, labels = draw(4, 8), draw(vocab_size, 8, seed=1) / 4, draw_labels(4, vocab_size)
    inputs = [states.requires_grad_(), weight.requires_grad_()]
    exact, _ = projected_cross_entropy(*inputs, labels, 0.1)
    expected = torch.autograd.grad(exact, inputs)
    with torch.autocast("cpu", dtype=torch.float16):
        loss, _ = projected_cross_entropy(*inputs, labels, 0.1)
    torch.testing.assert_close(loss, exact, rtol=1e-3, atol=0)
    for mine, theirs in zip(torch.autograd.grad(loss, inputs), expected, strict=True):
        assert (mine - theirs).norm() < 0.01 * theirs.norm()
    torch.testing.assert_close(mine.sum(0), theirs.sum(0), rtol=0.02, atol=1e-3)


def test_the_logits_never_exist_as_a_whole():
    states, weight = draw(64, 4).requires_grad_(), draw(500, 4, seed=1).requires_grad_()
    largest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), options=None):
            nonlocal largest
            result = function(*arguments, **(options or {}))
            if isinstance(result, Tensor):
                largest = max(largest, result.numel())
            return result

    with Watch():
        projected_cross_entropy(states, weight, draw_labels(64, 500), chunk_size=8)[0].backward()
    assert largest <= 8 * 500


# ---------------------------------------------------------------------- the model and its loss


@pytest.fixture
def batch() -> tuple[Tensor, Tensor, Tensor]:
    source = torch.tensor([[5, 6, 7, 2, 0], [8, 9, 10, 11, 2]])
    target_input = torch.tensor([[1, 4, 5, 0], [1, 6, 7, 8]])
    labels = torch.tensor([[4, 5, 2, 0], [6, 7, 8, 2]])
    return source, target_input, labels


def make_model(sharing: str) -> Transformer:
    torch.manual_seed(0)
    sizes = dict(d_model=8, d_ff=12, num_heads=2, num_layers=1, dropout=0.0)
    return Transformer(TransformerConfig(13, sharing=sharing, **sizes))


@VARIANTS
@pytest.mark.parametrize("sharing", ["three-way", "target", "none"])
def test_loss_of_a_model_and_the_gradient_of_its_shared_matrix(batch, sharing, variant):
    source, target_input, labels = batch
    model, real = make_model(sharing), batch[2] != 0
    plain = smoothed_cross_entropy(model(source, target_input)[real], labels[real], 0.2, variant)
    plain.backward()
    expected = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    loss, nll = TranslationLoss(model, 0.2, variant)(source, target_input, labels)
    loss.backward()
    torch.testing.assert_close(loss, plain)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name], atol=1e-5, rtol=1e-4, msg=name)
    logits = model(source, target_input).transpose(1, 2)
    bare = F.cross_entropy(logits, labels, ignore_index=0, reduction="sum")
    torch.testing.assert_close(nll, bare.detach())


def test_loss_ignores_padding_however_much_there_is(batch):
    criterion = TranslationLoss(make_model("three-way"))
    padded = [F.pad(ids, (0, 3)) for ids in batch]
    torch.testing.assert_close(criterion(*padded)[0], criterion(*batch)[0])


# ---------------------------------------------------------------------- perplexity


@pytest.mark.parametrize("batch_tokens", [8, 10_000])
def test_perplexity_is_exp_of_the_mean_cross_entropy(batch_tokens):
    model, pairs = make_tiny_model(dropout=0.5), make_pairs(12)
    model.eval()
    losses = []
    for row in range(len(pairs)):  # one sentence at a time, so no padding at all
        source, target = torch.tensor([pairs.source[row]]), torch.tensor(pairs.target[row])
        given = torch.cat([torch.tensor([1]), target[:-1]])[None]
        losses.append(F.cross_entropy(model(source, given)[0], target, reduction="none"))
    expected = torch.cat(losses).mean().exp().item()
    batches = TokenBatches(pairs, batch_tokens)
    random = torch.get_rng_state()
    for training in (False, True):
        model.train(training)
        assert perplexity(model, batches) == pytest.approx(expected, rel=1e-5)
        assert all(module.training is training for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.equal(random, torch.get_rng_state())
    rounded = perplexity(model, batches, torch.autocast("cpu", torch.bfloat16))
    assert rounded != expected and rounded == pytest.approx(expected, rel=0.02)
