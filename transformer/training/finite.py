"""A run whose numbers are no numbers stops, before it overwrites what was good."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from transformer.model.interface import ModuleLike
from transformer.training.state import is_shared_out


class NonFiniteLossError(RuntimeError):
    """Loss or weights became infinite or NaN; the message names step and last good checkpoint."""


def require_finite(
    losses: Sequence[float],
    step: int,
    model: ModuleLike,
    last_good: str,
    anywhere: Callable[[bool], bool] = bool,
) -> None:
    """Raise unless the latest losses and the weights they led to are finite.

    The losses alone do not tell: a finite loss can have an infinite gradient, and the weights of
    that step would go into a checkpoint before the next loss shows it.

    Args:
        losses: of the latest steps, one each.
        step: number of the last of these steps.
        model: its parameters are looked at.
        last_good: a clause that says what can be gone back to.
        anywhere: tells whether something holds in any process: of weights that are shared out,
            each sees its share only.

    Raises:
        NonFiniteLossError: if they are not.
    """
    found = None
    for number, loss in enumerate(losses, step - len(losses) + 1):
        if not math.isfinite(loss):
            found = f"loss is {loss} at step {number}"
            break
    else:
        weights: Iterator[Any] = model.parameters()  # what is shared out is more than a Parameter
        mine = (w.to_local() if is_shared_out(w) else w for w in weights)
        if anywhere(not torch.stack([weight.isfinite().all() for weight in mine]).all()):
            found = f"loss is finite but weights are not after step {step}"
    if found:
        advice = "a lower learning_rate_factor or longer warm-up may help"
        raise NonFiniteLossError(f"{found}; {last_good}; {advice}")
