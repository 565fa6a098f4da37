"""Deep models without residual connections or layer norms, and the gradients in their layers.

Paper: section 3.1 (LayerNorm(x + Sublayer(x)) around each sub-layer)
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer.data.batching import Batch
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer.training.loss import TranslationLoss


class PartialResidual(nn.Module):
    """The wrapper Norm(x + nn.Dropout(Sublayer(x))) of a sub-layer, with optional parts."""

    def __init__(self, d_model: int, dropout: float, residual: bool, norm: bool, eps: float):
        super().__init__()
        self.norm = nn.LayerNorm(d_model, eps=eps) if norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)
        self.residual = residual

    def forward(
        self, x: Float[Tensor, "*B_T d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "*B_T d_model"]:
        """Apply ``sublayer`` to ``x``, then the parts that are present."""
        y = self.dropout(sublayer(x))
        return self.norm(x + y if self.residual else y)


class PartialTransformer(Transformer):
    """A Transformer with or without residual connections and layer norms.

    With both it is the paper's model. A seed draws the same weights in each case.

    Args:
        config: sizes and options; ``norm`` must be "post".
    """

    def __init__(self, config: TransformerConfig, residual: bool = True, norm: bool = True):
        self.parts = (residual, norm)  # the layers are made in the next line
        super().__init__(config)

    # The layers only call it, as they call a Residual.
    def _residual(self) -> PartialResidual:  # type: ignore[override]
        c = self.config
        return PartialResidual(c.d_model, c.dropout, *self.parts, eps=c.layer_norm_eps)


def gradient_by_layer(model: Transformer, batch: Batch) -> tuple[list[float], list[float]]:
    """Measure how much gradient of the mean cross-entropy arrives at each layer.

    The ``grad`` attributes of the model are left unchanged.

    Returns:
        For each encoder layer, then for each decoder layer, first to last: the norm of the
        gradient with respect to all weight matrices of that layer.
    """
    total, _ = TranslationLoss(model, 0.0)(batch.source, batch.target_input, batch.labels)
    loss = total / batch.num_target_tokens

    layers = [
        [weight for weight in layer.parameters() if weight.ndim == 2]
        for layer in [*model.encoder, *model.decoder]
    ]
    gradients = iter(torch.autograd.grad(loss, [weight for layer in layers for weight in layer]))
    norms = [torch.stack([next(gradients).norm() for _ in layer]).norm().item() for layer in layers]
    return norms[: len(model.encoder)], norms[len(model.encoder) :]
