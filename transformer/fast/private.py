"""What only private names of PyTorch tell, and the careful answer where a version lacks one.

Each question asks whether something forbids the fast path. If it cannot be asked, the answer is
yes: the plain path is right everywhere.
"""

from typing import Any

import torch
from torch import Tensor, nn

# A name that is gone, and one that has other arguments now.
_CHANGED = (AttributeError, TypeError)

#: Attributes of a module: its hooks, and what calls it if it is compiled.
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
COMPILED = "_compiled_call_impl"


def may_be_transformed() -> bool:
    """Say whether ``torch.func`` may vectorise or differentiate the running program."""
    try:
        return bool(torch._C._are_functorch_transforms_active())
    except _CHANGED:
        return True


def may_be_watched() -> bool:
    """Say whether a mode may see or replace each operation: one that counts, traces or exports."""
    try:
        functions = torch._C._is_torch_function_mode_enabled()
        return bool(functions or torch._C._len_torch_dispatch_stack())
    except _CHANGED:
        return True


def may_have_hooks(module: nn.Module) -> bool:
    """Say whether code may run before or after a module, forwards or backwards."""
    try:
        everywhere = nn.modules.module._has_any_global_hook()
        return bool(everywhere or any(getattr(module, name) for name in HOOKS))
    except _CHANGED:
        return True


def may_be_replaced(module: nn.Module) -> bool:
    """Say whether a module may be compiled, or has a ``forward`` of its own besides its class's."""
    try:
        return getattr(module, COMPILED) is not None or "forward" in vars(module)
    except _CHANGED:
        return True


def one_dnn_product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Compute x W^T + b with oneDNN; see :func:`has_one_dnn_product`."""
    product: Any = torch.ops.mkldnn._linear_pointwise
    return product(x, weight, bias, "none", [], "")


def has_one_dnn_product() -> bool:
    """Say whether :func:`one_dnn_product` works in this PyTorch."""
    one = torch.ones(1, 1)
    try:
        return one_dnn_product(one, one, None).item() == 1
    except (*_CHANGED, RuntimeError):
        return False
