"""Cross-entropy with label smoothing, and without the logits.

Paper: section 5.4
"""

from typing import Any, Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from transformer.model.interface import TranslationModel
from transformer.model.linear import linear
from transformer.model.packing import Packing

Smoothing = Literal["uniform", "others", "others-but-padding"]


def smoothing_weights(
    epsilon: float, vocab_size: int, variant: Smoothing = "uniform"
) -> tuple[float, float, float]:
    """Return the target probabilities (true token, any other token, padding).

    The paper gives epsilon = 0.1 and a reference, but not how epsilon is shared out:

    * "uniform": over all V tokens, the true one included, as in the reference and in PyTorch.
    * "others": over the V - 1 others, as in the published code and in fairseq.
    * "others-but-padding": over the V - 2 others that are not padding, as in the Annotated
      Transformer.

    Args:
        epsilon: probability taken from the true token, in [0, 1).
        vocab_size: number of tokens V.
        variant: one of the three.

    Raises:
        ValueError: if ``epsilon`` or ``variant`` is outside its range.

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
    """Write out the smoothed target distribution of each label.

    Paper: section 5.4
    """
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

    The plain definition, to read and to test against. Training uses
    :func:`projected_cross_entropy`.

    Paper: section 5.4
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
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Project states to logits and sum their loss, a few rows at a time.

    The (N, V) logits are by far the largest tensor of a training step, and the loss needs each
    row once only. So a chunk of rows is projected, its loss taken, its gradient computed at once
    and the logits forgotten. Value and gradient are those of the plain definition.

    Args:
        states: decoder states at the positions that have a token to predict.
        weight: the output projection.
        labels: the tokens to predict.
        epsilon: label smoothing, in [0, 1).
        variant: how the smoothing is shared out, see :func:`smoothing_weights`.
        pad_id: id of padding.
        chunk_size: rows at a time; by default what fits a CPU's cache, or 8,192 on a GPU.

    Returns:
        The smoothed loss to train on and the plain negative log-likelihood to report, both summed
        over the N rows, in nats. Only the first has a gradient.

    Raises:
        ValueError: if ``epsilon``, ``variant`` or ``chunk_size`` is outside its range.

    Paper: section 5.4
    """
    if chunk_size is None:
        chunk_size = 256 if states.device.type == "cpu" else 8192
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, got {chunk_size}")
    weights = smoothing_weights(epsilon, len(weight), variant)
    with_gradient = torch.is_grad_enabled()
    return _ProjectedCrossEntropy.apply(
        states, weight, labels, weights, pad_id, chunk_size, with_gradient
    )


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
    ) -> tuple[Tensor, Tensor]:
        true, other, padding = weights
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
            grad_weight = weight.new_zeros(weight.t().shape)  # this way round it is faster
        with torch.autocast(device, enabled=False):
            for start in range(0, len(states), chunk_size):
                rows = slice(start, start + chunk_size)
                x, label = inputs[rows], labels[rows, None]
                log_p = linear(x, matrix).float().log_softmax(dim=-1)
                log_true, at_padding = log_p.gather(1, label).sum(), log_p[:, pad_id].sum()
                nll -= log_true
                # - sum_c q_c log p_c, where q is `other` everywhere but at two places
                loss -= (
                    (true - other) * log_true + other * log_p.sum() + (padding - other) * at_padding
                )
                if with_gradient:  # d loss / d logits = p - q, written over log p
                    p = log_p.exp_().sub_(other)
                    p[:, pad_id] -= padding - other
                    p.scatter_add_(1, label, p.new_full((), other - true).expand_as(label))
                    p = p.to(dtype)
                    grad_states[rows] = linear(p, matrix.t())
                    grad_weight += linear(x.t(), p.t())
        if with_gradient:
            ctx.save_for_backward(grad_states, grad_weight.t().contiguous())
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        grad_states, grad_weight = ctx.saved_tensors
        return grad_states * grad_loss, grad_weight * grad_loss, *[None] * 5


class TranslationLoss(nn.Module):
    """A model together with its loss: token ids in, summed loss out.

    One module, so that wrappers for several processes see the whole step. Any model with
    ``encode``, ``decoder_states`` and ``output_weight`` will do.

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

    def forward(
        self,
        source: Int[Tensor, "B S"],
        target_input: Int[Tensor, "B T"],
        labels: Int[Tensor, "B T"],
        rows: Int[Tensor, "N"] | None = None,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """Return (smoothed loss, negative log-likelihood), summed over the real labels.

        Args:
            source: source ids.
            target_input: target ids shifted right.
            labels: the tokens to predict.
            rows: places of the real ones in ``labels.flatten()``. Without them a GPU has to wait
                until they are found.

        Paper: section 5.4
        """
        pad_id = self.model.config.pad_id
        states = self.model.decoder_states(target_input, self.model.encode(source), source)
        if rows is None:
            rows = (labels != pad_id).flatten().nonzero().flatten()
        real = Packing(rows, (len(labels), labels.size(1))).pack(states)
        return projected_cross_entropy(
            real,
            self.model.output_weight,
            labels.flatten()[rows],
            self.epsilon,
            self.variant,
            pad_id,
        )
