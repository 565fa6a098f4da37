"""Networks of one shape and different seeds, trained in one go, which is several times as fast."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state
from torch.nn.attention import SDPBackend, sdpa_kernel


class Together(nn.Module):
    """Networks with weights of their own; the sum of their losses trains each as if alone."""

    def __init__(self, make: Callable[[], nn.Module], seeds: Iterable[int]):
        super().__init__()
        made = []
        for seed in seeds:
            torch.manual_seed(seed)
            made.append(make())
        self.one = [made[0]]  # in a list, so that its own weights are not trained
        stacked, self.buffers_of_all = stack_module_state(made)
        self.names = list(stacked)
        self.weights = nn.ParameterList(stacked.values())

    def forward(self, *inputs: Tensor) -> Tensor:
        """Compute every network; inputs and output have an axis of seeds in front."""
        weights = dict(zip(self.names, self.weights, strict=True))

        def run(own: dict[str, Tensor], buffers: dict[str, Tensor], *given: Tensor) -> Tensor:
            return functional_call(self.one[0], (own, buffers), given)

        with sdpa_kernel(SDPBackend.MATH):  # the fused kernels have no rule for vmap
            return torch.vmap(run)(weights, self.buffers_of_all, *inputs)
