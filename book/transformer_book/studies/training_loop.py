"""The training loop of the small experiments: Adam with the paper's settings, one loss per step."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from transformer.data.progress import progress


def optimise(
    model: nn.Module,
    loss: Callable[[int], Tensor],
    steps: int,
    rate: Callable[[int], float],
    eps: float = 1e-9,
) -> list[float]:
    """Train a model in place and leave it in evaluation mode."""
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=eps, fused=True)
    model.train()
    losses = []
    for step in progress(range(1, steps + 1)):
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        value = loss(step)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    model.eval()
    return losses
