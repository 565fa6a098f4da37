"""Cross-entropy with label smoothing, computed without storing the logits; and perplexity."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from transformer import fast
from transformer.data.batching import TokenBatches
from transformer.fast.packing import take_rows
from transformer.model.base import TranslationModel, evaluation_mode

Smoothing = Literal["uniform", "others", "others-but-padding"]
ChunkLoss = Callable[
    [Tensor, Tensor, tuple[float, float, float], int, bool], tuple[Tensor, Tensor, Tensor | None]
]


def smoothing_weights(
    epsilon: float, vocab_size: int, variant: Smoothing = "uniform"
) -> tuple[float, float, float]:
    """Return the target probabilities (true token, any other token, padding).

    The paper gives epsilon = 0.1 and a reference, but not how epsilon is distributed:

    * "uniform": over all V tokens, the true one included, as in the reference and in PyTorch.
    * "others": over the V - 1 others, as in the published code and in fairseq.
    * "others-but-padding": over the V - 2 others that are not padding, as in the Annotated
      Transformer.

    Args:
        epsilon: probability taken from the true token, in [0, 1).
        vocab_size: number of tokens V.
        variant: one of the three.

    Raises:
        ValueError: if ``epsilon`` or ``variant`` is out of range.

    Paper: section 5.4
    """
    if not 0 <= epsilon < 1:
        raise ValueError(f"epsilon must be in [0, 1), got {epsilon}")
    if variant == "uniform":
        other = epsilon / vocab_size
        return 1 - epsilon + other, other, other
    if variant == "others":
        other = epsilon / (vocab_size - 1)
        return 1 - epsilon, other, other
    if variant == "others-but-padding":
        return 1 - epsilon, epsilon / (vocab_size - 2), 0.0
    raise ValueError(f"variant must be one of {get_args(Smoothing)}, got {variant!r}")


def smoothed_targets(
    labels: Int[Tensor, "N"],
    vocab_size: int,
    epsilon: float = 0.1,
    variant: Smoothing = "uniform",
    pad_id: int = 0,
) -> Float[Tensor, "N V"]:
    """Return the smoothed target distribution of each label."""
    true, other, padding = smoothing_weights(epsilon, vocab_size, variant)
    targets = torch.full((len(labels), vocab_size), other, device=labels.device)
    targets[:, pad_id] = padding
    return targets.scatter_(1, labels[:, None], true)


def smoothed_cross_entropy(
    logits: Float[Tensor, "N V"],
    labels: Int[Tensor, "N"],
    epsilon: float = 0.1,
    variant: Smoothing = "uniform",
    pad_id: int = 0,
) -> Float[Tensor, ""]:
    """Sum the cross-entropy, in nats, between smoothed labels and softmax(logits).

    This is the plain definition, for reading and testing. Training uses
    :func:`projected_cross_entropy`.
    """
    targets = smoothed_targets(labels, logits.size(1), epsilon, variant, pad_id)
    return -(targets * logits.log_softmax(dim=-1)).sum()


def projected_cross_entropy(
    states: Float[Tensor, "N d_model"],
    weight: Float[Tensor, "V d_model"],
    labels: Int[Tensor, "N"],
    epsilon: float = 0.1,
    variant: Smoothing = "uniform",
    pad_id: int = 0,
    chunk_size: int | None = None,
    product: Callable[[Tensor, Tensor], Tensor] = F.linear,
    chunk_loss: ChunkLoss | None = None,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Project states to logits and sum their loss, a few rows at a time.

    The (N, V) logits are by far the largest tensor of a training step, and the loss needs each
    row only once. So a chunk of rows is projected, its loss and gradient are computed at once, and
    the logits are freed. Value and gradient equal those of the plain definition.

    Args:
        states: decoder states at the positions that have a token to predict.
        weight: the output projection.
        labels: the tokens to predict.
        epsilon: label smoothing, in [0, 1).
        variant: see :func:`smoothing_weights`.
        pad_id: id of padding.
        chunk_size: rows at a time; by default 256, to fit a CPU's cache, or 8,192 on a GPU.
        product: multiplies by a transposed matrix.
        chunk_loss: compiled, see :meth:`TranslationLoss.compile_chunk`; None for the plain one.

    Returns:
        The smoothed loss to train on and the plain negative log-likelihood to report, both summed
        over the N rows, in nats. Only the first has a gradient.
    """
    if chunk_size is None:
        chunk_size = 256 if states.device.type == "cpu" else 8192
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, got {chunk_size}")
    weights = smoothing_weights(epsilon, len(weight), variant)
    with_gradient = torch.is_grad_enabled()
    return _ProjectedCrossEntropy.apply(
        states, weight, labels, weights, pad_id, chunk_size, with_gradient, product,
        chunk_loss or _chunk_loss,
    )  # fmt: skip


def _chunk_loss(
    logits: Tensor,
    label: Tensor,
    weights: tuple[float, float, float],
    pad_id: int,
    with_gradient: bool,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return the loss of some rows, their log-likelihood, and d loss / d logits.

    The softmax and the sums are in float32, the gradient in the type of the logits.
    """
    true, other, padding = weights
    log_p = logits.float().log_softmax(dim=-1)
    log_true, at_padding = log_p.gather(1, label).sum(), log_p[:, pad_id].sum()
    # - sum_c q_c log p_c, where q is `other` everywhere except in two places
    loss = -((true - other) * log_true + other * log_p.sum() + (padding - other) * at_padding)
    if not with_gradient:
        return loss, log_true, None
    if torch.compiler.is_compiling():  # a single expression becomes a single kernel
        column = torch.arange(logits.size(1), device=logits.device)
        q = torch.where(column == label, true, torch.where(column == pad_id, padding, other))
        return loss, log_true, (log_p.exp() - q).to(logits.dtype)
    p = log_p.exp_().sub_(other)  # p - q in place of log p
    p[:, pad_id] -= padding - other
    p.scatter_add_(1, label, p.new_full((), other - true).expand_as(label))
    return loss, log_true, p.to(logits.dtype)


class _ProjectedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        labels: Tensor,
        weights: tuple[float, float, float],
        pad_id: int,
        chunk_size: int,
        with_gradient: bool,
        product: Callable[[Tensor, Tensor], Tensor],
        chunk_loss: ChunkLoss,
    ) -> tuple[Tensor, Tensor]:
        device = states.device.type
        autocast = torch.is_autocast_enabled(device)
        dtype = torch.get_autocast_dtype(device) if autocast else states.dtype
        # Products in the autocast type, sums and softmax in float32.
        inputs, matrix = states.to(dtype), weight.to(dtype)
        loss, nll = (
            states.new_zeros((), dtype=torch.float32),
            states.new_zeros((), dtype=torch.float32),
        )
        if with_gradient:
            grad_states = torch.empty_like(states)
            grad_weight = weight.new_zeros(weight.t().shape)  # faster than not transposed
        with torch.autocast(device, enabled=False):
            for start in range(0, len(states), chunk_size):
                rows = slice(start, start + chunk_size)
                x, label = inputs[rows], labels[rows, None]
                part, log_true, p = chunk_loss(
                    product(x, matrix), label, weights, pad_id, with_gradient
                )
                loss += part
                nll -= log_true
                if p is not None:
                    grad_states[rows] = product(p, matrix.t())
                    grad_weight += product(x.t(), p.t())
        if with_gradient:
            ctx.save_for_backward(grad_states, grad_weight.t().contiguous())
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        grad_states, grad_weight = ctx.saved_tensors
        return grad_states * grad_loss, grad_weight * grad_loss, *[None] * 7


class TranslationLoss(nn.Module):
    """A model together with its loss: token ids in, summed loss out.

    One module, so that wrappers for several processes see the whole step.

    Args:
        model: the model to train.
        epsilon: label smoothing.
        variant: see :func:`smoothing_weights`.

    Paper: section 5.4
    """

    def __init__(
        self, model: TranslationModel, epsilon: float = 0.1, variant: Smoothing = "uniform"
    ):
        super().__init__()
        self.model, self.epsilon, self.variant = model, epsilon, variant
        self._compiled_model: Callable[[Tensor, Tensor], Tensor] | None = None
        self._compiled_chunk: ChunkLoss | None = None

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile the model as a whole; arguments are those of ``torch.compile``."""
        self._compiled_model = torch.compile(self._run_model, *args, **kwargs)

    def compile_chunk(self, *args: Any, **kwargs: Any) -> None:
        """Compile the loss of a chunk of logits, as ``torch.compile`` does.

        The matrix products of the vocabulary stay outside: they take one chunk at a time, so that
        the logits are never stored.
        """
        self._compiled_chunk = torch.compile(_chunk_loss, *args, **kwargs)

    def _run_model(self, source: Tensor, target_input: Tensor) -> Tensor:
        return self.model.decoder_states(target_input, self.model.encode(source), source)

    def forward(
        self,
        source: Int[Tensor, "B S"],
        target_input: Int[Tensor, "B T"],
        labels: Int[Tensor, "B T"],
        rows: Int[Tensor, "N"] | None = None,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """Return (smoothed loss, negative log-likelihood), summed over the real labels.

        ``target_input`` holds the target shifted right, ``rows`` the places of the real labels in
        ``labels.flatten()``. Without them a GPU has to wait until they are found.
        """
        pad_id = self.model.config.pad_id
        run = self._compiled_model or self._run_model
        states = run(source, target_input)
        if rows is None:
            rows = (labels != pad_id).flatten().nonzero().flatten()
        real = take_rows(states.flatten(0, 1), rows)
        return projected_cross_entropy(
            real,
            self.model.output_weight,
            labels.flatten()[rows],
            self.epsilon,
            self.variant,
            pad_id,
            product=fast.linear.linear if fast.is_enabled(self.model) else F.linear,
            chunk_loss=self._compiled_chunk,
        )


@torch.no_grad()
def perplexity(
    model: TranslationModel,
    batches: TokenBatches,
    autocast: AbstractContextManager[Any] | None = None,
) -> float:
    """Return exp of the mean negative log-likelihood per target token, without smoothing.

    Dropout is off. The tokens are wordpieces and ``<eos>``, so only models with the same
    vocabulary can be compared. ``autocast`` is the precision of the computation, None that of the
    weights.

    Paper: section 6.2, Table 3
    """
    device = next(model.parameters()).device
    loss = TranslationLoss(model)
    nll = tokens = 0.0
    with evaluation_mode(model), autocast or nullcontext():
        for rows in batches.epoch(0):
            batch = batches.batch(rows).to(device)
            nll += loss(batch.source, batch.target_input, batch.labels)[1].item()
            tokens += batch.num_target_tokens
    return math.exp(min(nll / tokens, 700.0))
