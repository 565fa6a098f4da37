"""Dependence of each output on each input, measured by gradients: the test for leaks."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer.model.transformer import Transformer


def influence(
    model: Transformer, source: Int[Tensor, "1 S"], target: Int[Tensor, "1 T"]
) -> tuple[Float[Tensor, "T T"], Float[Tensor, "T S"]]:
    """Return the norms of the Jacobian of each logit vector: by target and by source position."""
    embedded: list[Tensor] = []

    def watch(module: torch.nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        embedded.append(output.detach().requires_grad_())
        return embedded[-1]

    modules = {model.embedding, model._target_embedding}
    hooks = [module.register_forward_hook(watch) for module in modules]
    try:
        logits = model(source, target)[0]
    finally:
        for hook in hooks:
            hook.remove()
    # One backward pass per logit; squared norms add up over the logits of a position.
    sides = target, source
    squares = [torch.zeros(len(logits), ids.size(1), dtype=logits.dtype) for ids in sides]
    for position, row in enumerate(logits):
        for logit in row:
            gradients = torch.autograd.grad(logit, embedded[::-1], retain_graph=True)
            for total, gradient in zip(squares, gradients, strict=True):
                total[position] += gradient[0].pow(2).sum(dim=-1)
    to_target, to_source = (total.sqrt() for total in squares)
    return to_target, to_source
