"""Steps of an optimizer, Adam with Eq. (3) or the user's own, on any device and in any process."""

import copy
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from accelerate import Accelerator
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from transformer import fast
from transformer.data.batching import Batch
from transformer.fast.device import set_up
from transformer.fast.residual import use_half_residuals
from transformer.model.base import TranslationModel
from transformer.model.transformer import Transformer
from transformer.training import checks, state
from transformer.training.config import TrainingConfig, usable_precision
from transformer.training.loss import TranslationLoss
from transformer.training.schedule import FIELDS, recipe_schedule
from transformer.training.stream import send

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


class Stepper:
    """A model with its loss, optimizer and schedule, on its devices, compiled and sharded as asked.

    Arguments and errors are those of :class:`~transformer.training.trainer.Trainer`.
    """

    step: int  # taken so far

    def __init__(
        self,
        model: TranslationModel,
        config: TrainingConfig,
        accelerator: Accelerator,
        optimizer: Optimizer | MakeOptimizer | None,
        schedule: Schedule | None,
    ):
        self.model, self.config, self.accelerator = model, config, accelerator
        device, processes = accelerator.device, accelerator.num_processes
        #: "fp32", "bf16" or "fp16": that of ``config``, or what the device has instead.
        self.precision = usable_precision(config.precision, device)
        # Not Accelerate's precision, which is one for the whole process.
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.precision == "fp16")
        set_up(device)
        self.learning_rate = 0.0  # of the latest step
        self.swaps: int | None = None  # of classes, when those of the recipe were chosen
        self.compiled = config.compile and checks.can_compile(device)
        model.to(device)
        self.choose_classes()
        if isinstance(model, Transformer):
            model.checkpoint_activations = config.checkpoint_activations
        self.sharded = config.shard and processes > 1
        if self.sharded and self.precision == "fp16":
            raise ValueError('precision "fp16" cannot be sharded; use "bf16" or "fp32"')
        # A shard cannot translate: ``model`` stays whole, and receives the weights of ``trained``
        # in the main process when they are validated or saved.
        self.trained = copy.deepcopy(model) if self.sharded else model
        use_half_residuals(self.trained, config.half_residual)
        loss = TranslationLoss(self.trained, config.label_smoothing, config.smoothing)
        if self.compiled and self.sharded:  # the weights of a layer are gathered outside its graph
            for layer in state.layers_of(self.trained):
                layer.compile(dynamic=True)
        elif self.compiled:
            loss.compile(dynamic=True)
        if self.compiled or checks.compiles_loss(device):
            loss.compile_chunk(dynamic=True)
        if self.sharded:
            state.shard(loss, device, processes)
        self.loss = loss if self.sharded or processes == 1 else _in_parallel(loss)
        self.optimizer = build_optimizer(optimizer, config, list(loss.parameters()))
        if self.optimizer.state:  # of the user, and perhaps where the model was before
            self.optimizer.load_state_dict(self.optimizer.state_dict())
        own, d_model = optimizer is not None, model.config.d_model
        self.schedule = LearningRate(schedule, own, config, d_model, self.optimizer)

    def choose_classes(self) -> None:
        """Use the classes that the recipe asks for, if any were swapped since the last call."""
        if self.swaps == fast.swaps:
            return
        on_cpu = self.accelerator.device.type == "cpu"
        wanted = self.config.fast and not self.compiled and on_cpu
        (fast.enable if wanted else fast.disable)(self.model)
        self.swaps = fast.swaps

    def train_step(self, group: list[Batch], count: int) -> torch.Tensor:
        """Take one optimizer step on this process's batches.

        Args:
            group: the batches.
            count: real target tokens of the whole step, over all processes.

        Returns:
            Their part of the mean loss, on the device, which may still be computing it.
        """
        accelerator, clip_norm = self.accelerator, self.config.clip_norm
        self.choose_classes()  # a Translator of the model may have changed them
        self.learning_rate = self.schedule.start(self.step + 1)
        total = torch.zeros((), device=accelerator.device)
        for i, batch in enumerate(group):
            batch = send(batch, accelerator.device)
            # Gradients are exchanged once per step, with the last batch.
            with accelerator.no_sync(self.loss) if i + 1 < len(group) else nullcontext():
                with self.autocast():
                    loss, _ = self.loss(batch.source, batch.target_input, batch.labels, batch.rows)
                # Data-parallel gradients are averaged over the processes, but the sum is needed.
                self.scaler.scale(loss * (accelerator.num_processes / count)).backward()
            total += loss.detach()
        if clip_norm is not None:
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.loss.parameters(), clip_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.schedule.end()
        self.loss.zero_grad()  # of all weights, even those that a user's optimizer leaves alone
        return total / count

    def autocast(self) -> AbstractContextManager[Any]:
        """Return a context that computes in the precision of this run."""
        if self.precision == "fp32":
            return nullcontext()
        half = torch.bfloat16 if self.precision == "bf16" else torch.float16
        return torch.autocast(self.accelerator.state.device.type, half)

    def gather_weights(self) -> None:
        """Give ``model`` the weights of the shards, in the main process; all must call this."""
        if self.sharded:
            main = self.accelerator.is_main_process
            weights = state.gather(self.trained.state_dict(), keep=main)
            if main:
                self.model.load_state_dict(weights)


def _in_parallel(loss: TranslationLoss) -> nn.Module:
    """Average the gradients over the processes."""
    with warnings.catch_warnings():
        # The replacement, forward_sync_buffers, would broadcast the tables at the start.
        warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
        # Each process's table of positions grows on its own; tables of different length cannot
        # be broadcast.
        return DistributedDataParallel(loss, broadcast_buffers=False)
