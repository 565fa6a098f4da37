"""Stop a run early: on a signal, in all processes at the same step, or when numbers turn bad."""

import math
import signal
import threading
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

import torch
from accelerate import Accelerator
from torch import nn

from transformer.training.state import is_sharded


class NonFiniteLossError(RuntimeError):
    """Loss or weights became infinite or NaN; the message names step and last good checkpoint."""


class Interruption:
    """Turn the first Ctrl-C or SIGTERM into a request to finish the step, save and stop.

    Within ``with Interruption() as interruption``, the first signal sets ``requested`` and stores
    its ``number``. A second signal uses the original handler. Signal handlers exist in the main
    thread only; elsewhere this does nothing.
    """

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.requested = False
        self.number: int | None = None

    def __enter__(self) -> "Interruption":
        self.before = {}
        if threading.current_thread() is threading.main_thread():
            self.before = {number: signal.signal(number, self._ask) for number in self.SIGNALS}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.requested, self.number = True, number
        self.__exit__()


def anywhere(flag: bool, accelerator: Accelerator) -> bool:
    """Say whether a condition holds in any process; each must call this."""
    if accelerator.num_processes == 1:
        return flag
    flags = torch.tensor(float(flag), device=accelerator.device)
    return bool(accelerator.reduce(flags, "sum"))


def require_finite(
    losses: Sequence[float],
    step: int,
    model: nn.Module,
    last_good: str,
    accelerator: Accelerator,
) -> None:
    """Raise NonFiniteLossError unless the losses of the latest steps and the weights are finite.

    Checking the losses is not enough: a finite loss can have an infinite gradient, and the weights
    of that step would be saved before the next loss shows it. ``last_good`` names the checkpoint to
    return to.
    """
    found = None
    for number, loss in enumerate(losses, step - len(losses) + 1):
        if not math.isfinite(loss):
            found = f"loss is {loss} at step {number}"
            break
    else:
        weights: Iterator[Any] = model.parameters()  # a sharded one is more than a Parameter
        mine = (w.to_local() if is_sharded(w) else w for w in weights)
        finite = torch.stack([weight.isfinite().all() for weight in mine]).all()
        if anywhere(not finite, accelerator):
            found = f"loss is finite but weights are not after step {step}"
    if found:
        advice = (
            "try a lower learning rate or a longer warm-up, in another folder: a run resumes only "
            "with its own settings"
        )
        raise NonFiniteLossError(f"{found}; {last_good}; {advice}")
