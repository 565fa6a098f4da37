"""Keep the sums between the layers in half precision, which halves their memory traffic.

Under autocast a layer norm returns float32, so that the residual connections carry float32 from
layer to layer, although every product around them reads and writes half precision.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer.model.layers import Residual


class HalfResidual(Residual):
    """A residual connection whose output has the type of autocast, where autocast is on.

    The layer norm itself is still computed in float32.
    """

    def forward(
        self, x: Float[Tensor, "B T d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "B T d_model"]:
        """Apply ``sublayer`` to ``x`` and add its output to ``x``."""
        output, device = super().forward(x, sublayer), x.device.type
        half = torch.is_autocast_enabled(device)
        return output.to(torch.get_autocast_dtype(device)) if half else output


def use_half_residuals(model: nn.Module, half: bool) -> None:
    """Let the residual connections of a Transformer have the type of autocast, or of the norm."""
    for module in model.modules():
        if type(module) in (Residual, HalfResidual):
            module.__class__ = HalfResidual if half else Residual
