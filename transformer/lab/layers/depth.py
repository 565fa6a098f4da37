"""What the wrapper of a sub-layer does to depth: models without a part of it, and their gradients.

Paper: section 3.1 (LayerNorm(x + Sublayer(x)) around each sub-layer)
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer.data.batching import Batch
from transformer.model.config import TransformerConfig
from transformer.model.dropout import Dropout
from transformer.model.transformer import Transformer
from transformer.training.loss import TranslationLoss


class PartialResidual(nn.Module):
    """The wrapper of a sub-layer with a part left out: Norm(x + Dropout(Sublayer(x))).

    Args:
        d_model: size of a vector.
        dropout: P_drop.
        residual: False leaves ``x +`` out.
        norm: False leaves the layer norm out.
        eps: added to the variance under the root.

    Paper: section 3.1
    """

    def __init__(self, d_model: int, dropout: float, residual: bool, norm: bool, eps: float):
        super().__init__()
        self.norm = nn.LayerNorm(d_model, eps=eps) if norm else nn.Identity()
        self.dropout = Dropout(dropout)
        self.residual = residual

    def forward(
        self, x: Float[Tensor, "*B_T d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "*B_T d_model"]:
        """Apply ``sublayer`` to ``x``, with or without a sum and a norm after it.

        Paper: section 3.1
        """
        y = self.dropout(sublayer(x))
        return self.norm(x + y if self.residual else y)


class PartialTransformer(Transformer):
    """A Transformer without the residual sums, without the layer norms, or without both.

    With neither left out it is the paper's model. The weights that a seed draws are the same in
    each case.

    Args:
        config: sizes and options; ``norm`` must be "post".
        residual: False leaves the residual sums out.
        norm: False leaves the layer norms out.

    Raises:
        ValueError: if the configuration is not post-norm.

    Paper: section 3.1
    """

    def __init__(self, config: TransformerConfig, residual: bool = True, norm: bool = True):
        if config.norm != "post":
            raise ValueError(f"norm must be 'post' in the configuration, got {config.norm!r}")
        self.parts = (residual, norm)  # the layers are made in the next line
        super().__init__(config)

    # The layers only call it, as they call a Residual.
    def _residual(self) -> PartialResidual:  # type: ignore[override]
        c = self.config
        return PartialResidual(c.d_model, c.dropout, *self.parts, eps=c.layer_norm_eps)


def gradient_by_layer(model: Transformer, batch: Batch) -> tuple[list[float], list[float]]:
    """Measure how much of the gradient arrives at each layer.

    The loss is the mean cross-entropy of the batch. The model's own gradients are left as they are.

    Args:
        model: any model with the layers of a Transformer.
        batch: sentence pairs.

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
