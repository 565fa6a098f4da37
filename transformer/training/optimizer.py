"""The optimizer and its learning rate: Adam with Eq. (3), or the user's own."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from transformer.training.config import TrainingConfig
from transformer.training.schedule import FIELDS, recipe_schedule

#: Creates an optimizer for the parameters that it is given.
MakeOptimizer = Callable[[Iterator[nn.Parameter]], Optimizer]
#: A function from the step, counted from 1, to its learning rate; or a PyTorch scheduler.
Schedule = Callable[[int], float] | LRScheduler

# The fields of a configuration that only the paper's optimizer reads.
_ADAM = ("beta1", "beta2", "adam_eps")

_PLAIN = (bool, int, float, str, type(None))


def build_optimizer(
    given: Optimizer | MakeOptimizer | None, config: TrainingConfig, parameters: list[nn.Parameter]
) -> Optimizer:
    """Return Adam with the settings of a recipe, or the optimizer that the user passed.

    Args:
        given: None for Adam; an optimizer over all or some of ``parameters``; or a function that
            creates one.
        config: the recipe.
        parameters: those of the model in training.

    Raises:
        TypeError: if ``given`` is of another type.
        ValueError: if it holds other parameters, if the recipe sets something that only the
            built-in Adam reads, or if weights are sharded and ``given`` is not a function.

    Paper: section 5.3
    """
    if given is None:
        betas, eps = (config.beta1, config.beta2), config.adam_eps
        return torch.optim.Adam(parameters, lr=0.0, betas=betas, eps=eps, fused=True)
    _require_default(config, _ADAM, "an optimizer of your own")
    if isinstance(given, Optimizer):
        if config.shard:
            raise ValueError(
                "with shard, optimizer must be a function that makes it for the sharded "
                f"parameters, such as lambda p: AdamW(p, lr=1e-4); got a {type(given).__name__}"
            )
        optimizer = given
    else:
        optimizer = given(iter(parameters)) if callable(given) else given
    if not isinstance(optimizer, Optimizer):
        what = "optimizer" if optimizer is given else "optimizer(parameters)"
        raise TypeError(
            f"{what} must be a torch.optim.Optimizer, got {type(optimizer).__name__}, or "
            "a function that takes the parameters and returns one"
        )
    known = {id(parameter) for parameter in parameters}
    held = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    strange = sum(id(parameter) not in known for parameter in held)
    if strange:
        raise ValueError(
            f"{strange} of the {len(held)} parameters in optimizer do not belong to model; create "
            "it with the parameters() of this model"
        )
    return optimizer


class LearningRate:
    """Set the learning rate of each step.

    Args:
        schedule: None for Eq. (3), or for the learning rates of the user's own optimizer; a
            function of the step; or a PyTorch scheduler for ``optimizer``.
        own: whether ``optimizer`` is the user's own.
        config: the recipe.
        d_model: size of the model's vectors.
        optimizer: as :func:`build_optimizer` returned it.

    Raises:
        TypeError: if ``schedule`` is of another type.
        ValueError: if a scheduler belongs to another optimizer or needs a score, or the recipe sets
            something that only Eq. (3) reads.

    Paper: section 5.3, Eq. (3)
    """

    def __init__(
        self,
        schedule: Schedule | None,
        own: bool,
        config: TrainingConfig,
        d_model: int,
        optimizer: Optimizer,
    ):
        self.optimizer, self.kind = optimizer, "Eq. (3)"
        self.scheduler: LRScheduler | None = None
        self.function: Callable[[int], float] | None = None
        if schedule is None and not own:
            self.function = recipe_schedule(config, d_model)
        else:
            reason = "a schedule" if schedule is not None else "an optimizer"
            _require_default(config, FIELDS, f"{reason} of your own")
        if isinstance(schedule, ReduceLROnPlateau):
            raise ValueError(
                "schedule must not be a ReduceLROnPlateau, which needs a score at each step: call "
                "its step() in a callback's on_validation"
            )
        elif isinstance(schedule, LRScheduler):
            if schedule.optimizer is not optimizer:
                raise ValueError("schedule belongs to another optimizer than the one given")
            self.scheduler, self.kind = schedule, type(schedule).__name__
        elif callable(schedule):
            rate = schedule(1)
            if not (isinstance(rate, (int, float)) and 0 <= rate < math.inf):
                raise TypeError(
                    "schedule must be a function from the step, counted from 1, to a learning "
                    f"rate; schedule(1) is {rate!r:.60}"
                )
            self.function, self.kind = schedule, "function"
        elif schedule is not None:
            raise TypeError(
                "schedule must be a function of the step or a scheduler of "
                f"torch.optim.lr_scheduler, got {type(schedule).__name__}"
            )
        elif own:
            self.kind = "constant"
        self.settings = self._settings() if own else {}

    def start(self, step: int) -> float:
        """Set the learning rate of a step, counted from 1; return that of the first group."""
        if self.function is not None:
            rate = self.function(step)
            for group in self.optimizer.param_groups:
                group["lr"] = rate
        return float(self.optimizer.param_groups[0]["lr"])

    def end(self) -> None:
        """Advance a PyTorch scheduler after an optimizer step."""
        if self.scheduler is not None:
            self.scheduler.step()

    def identity(self) -> dict[str, Any]:
        """Return the settings that must be equal for a run to resume, as before the first step."""
        return dict(optimizer=type(self.optimizer).__name__, schedule=self.kind) | self.settings

    def state_dict(self) -> dict[str, Any]:
        """Return the state of a PyTorch scheduler; a function of the step has none."""
        return self.scheduler.state_dict() if self.scheduler is not None else {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what :meth:`state_dict` returned."""
        if self.scheduler is not None:
            self.scheduler.load_state_dict(state)

    def _settings(self) -> dict[str, Any]:
        groups = self.optimizer.param_groups
        # A schedule overwrites the learning rates; "initial_lr" is where a scheduler starts.
        varies = ("params", "lr") if self.kind != "constant" else ("params",)
        found: dict[str, Any] = {
            f"optimizer.{name}": [_plain(group.get(name)) for group in groups]
            for name in groups[0]
            if name not in varies
        }
        for name, value in self.state_dict().items():
            if name != "last_epoch" and not name.startswith("_") and isinstance(value, _PLAIN):
                found[f"schedule.{name}"] = value
        return found


def _plain(value: Any) -> Any:
    """Convert a setting of an optimizer to a type that can be saved in a state."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value if isinstance(value, _PLAIN) else repr(value)


def _require_default(config: TrainingConfig, names: tuple[str, ...], because: str) -> None:
    default = TrainingConfig()
    for name in names:
        value, usual = getattr(config, name), getattr(default, name)
        if value != usual:
            raise ValueError(
                f"{name}={value!r} has no effect with {because}; leave it at {usual!r}"
            )
