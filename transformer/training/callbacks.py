"""Callbacks: your own code at fixed moments of a training run, and early stopping."""

import math
import warnings
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from transformer.settings import COUNT, NOT_NEGATIVE

if TYPE_CHECKING:
    from pathlib import Path

    from transformer.training.trainer import Trainer

Mode = Literal["min", "max"]
Event = Literal["on_start", "on_step", "on_log", "on_validation", "on_checkpoint", "on_end"]


class Callback:
    """Run your own code during :meth:`~transformer.training.trainer.Trainer.fit`.

    A subclass overrides the methods that it needs. They are called in every process, with the same
    numbers. ``trainer.stop()`` ends the run after the current step. With sharded weights,
    ``trainer.model`` is up to date in the main process only.

    The main process saves what ``state_dict`` returns with the state of the run. When the run
    resumes, every process passes it to ``load_state_dict``, before ``on_start``. If a run has
    several callbacks of one class, ``owns`` tells their states apart.
    """

    def on_start(self, trainer: "Trainer") -> None:
        """Run when ``fit`` starts, after the state is loaded and before any file is written."""

    def on_step(self, trainer: "Trainer") -> None:
        """Run after each optimizer step; ``trainer.step`` already includes it."""

    def on_log(self, trainer: "Trainer", numbers: dict[str, float]) -> None:
        """Run after each line of the curve.

        There is one every ``log_every`` steps, and at each validation, checkpoint and early end.

        Args:
            trainer: the run.
            numbers: "loss", "learning_rate" and "tokens_per_second".
        """

    def on_validation(self, trainer: "Trainer", numbers: dict[str, float]) -> None:
        """Run after each validation.

        Args:
            trainer: the run.
            numbers: "perplexity", if there are validation pairs, and what ``score`` returns. A
                number can be NaN.
        """

    def on_checkpoint(self, trainer: "Trainer", path: "Path") -> None:
        """Run after the weights of a checkpoint are written, before the state of the run is.

        Training waits for the file if a callback has this method.

        Args:
            trainer: the run.
            path: the weight file.
        """

    def on_end(self, trainer: "Trainer") -> None:
        """Run when ``fit`` ends, with everything saved, unless an error ended it."""

    def state_dict(self) -> dict[str, Any]:
        """Return what must survive an interruption: tensors, numbers, strings, lists, dicts."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what :meth:`state_dict` returned before the run was interrupted."""

    def owns(self, state: dict[str, Any]) -> bool:
        """Say whether a state can be this callback's, and not only another's of its class."""
        return True


class EarlyStopping(Callback):
    """End a run once validation has stopped improving.

    The run then counts as finished: ``fit()`` returns True, also when it is called again, unless
    ``patience`` has grown.

    Args:
        metric: "perplexity", or the name of a number that ``score`` returns.
        patience: number of validations in a row without an improvement, at least 1.
        minimum_change: only a larger change counts as an improvement; at least 0.
        mode: "min" if lower is better, "max" if higher is; None means "min" for the perplexity and
            "max" for all others.

    Raises:
        ValueError: if an argument is out of range, or the run does not measure ``metric``.
    """

    def __init__(
        self,
        metric: str = "perplexity",
        patience: int = 5,
        minimum_change: float = 0.0,
        mode: Mode | None = None,
    ):
        if mode is not None and mode not in get_args(Mode):
            raise ValueError(f"mode must be None or one of {get_args(Mode)}, got {mode!r}")
        self.metric, self.patience = metric, COUNT("patience", patience)
        self.minimum_change = NOT_NEGATIVE("minimum_change", minimum_change)
        self.mode: Mode = mode or ("min" if metric == "perplexity" else "max")
        self.best: float | None = None
        self.waited = 0  # validations since the best

    def on_start(self, trainer: "Trainer") -> None:
        """Refuse a metric that is not measured; end at once if the run was ended before."""
        source = trainer.validation if self.metric == "perplexity" else trainer.score
        if source is None:
            needed = "validation" if self.metric == "perplexity" else "score"
            raise ValueError(f"EarlyStopping needs {self.metric!r}: give the trainer a {needed}")
        if trainer.step == 0:  # a new run: forget the one that this object watched before
            self.best, self.waited = None, 0
        if self.waited >= self.patience:
            trainer.stop()

    def on_validation(self, trainer: "Trainer", numbers: dict[str, float]) -> None:
        """Compare with the best so far, and end the run when patience is exhausted."""
        if self.metric not in numbers:
            raise ValueError(
                f"EarlyStopping watches {self.metric!r}, but validation measures "
                f"{', '.join(numbers)}"
            )
        value = numbers[self.metric]
        sign = -1 if self.mode == "min" else 1
        gain = math.inf if self.best is None else sign * (value - self.best)
        if gain > self.minimum_change and math.isfinite(value):
            self.best, self.waited = value, 0
        else:
            self.waited += 1
        if self.waited >= self.patience:
            trainer.stop()

    def state_dict(self) -> dict[str, Any]:
        """Return the metric, its best number, and the number of validations since then."""
        return dict(metric=self.metric, mode=self.mode, best=self.best, waited=self.waited)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what :meth:`state_dict` returned."""
        self.best, self.waited = state["best"], state["waited"]

    def owns(self, state: dict[str, Any]) -> bool:
        """Say whether a state is of the same metric and mode."""
        # States of earlier versions do not name their metric.
        saved = state.get("metric", self.metric), state.get("mode", self.mode)
        return saved == (self.metric, self.mode)


class Callbacks:
    """The callbacks of a run, in the order in which they are called."""

    def __init__(self, callbacks: Sequence[Callback]):
        if not isinstance(callbacks, Sequence):
            kind = type(callbacks).__name__
            raise TypeError(f"callbacks must be a sequence, such as [EarlyStopping()], got {kind}")
        for each in callbacks:
            if not isinstance(each, Callback):
                kind = each.__name__ if isinstance(each, type) else type(each).__name__
                hint = f"; pass an instance, {kind}()" if isinstance(each, type) else ""
                raise TypeError(f"callbacks must be instances of Callback, got {kind}{hint}")
        kinds = [type(callback).__name__ for callback in callbacks]
        names = [f"{kind} {kinds[:i].count(kind) + 1}" for i, kind in enumerate(kinds)]
        self._by_name = dict(zip(names, callbacks, strict=True))

    def call(self, event: Event, *arguments: Any) -> None:
        """Call a method of each."""
        for callback in self._by_name.values():
            getattr(callback, event)(*arguments)

    def override(self, event: Event) -> bool:
        """Say whether one of them does something at an event."""
        return any(
            getattr(type(each), event) is not getattr(Callback, event)
            for each in self._by_name.values()
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the state of each callback, by its class and its number within that class."""
        return {name: callback.state_dict() for name, callback in self._by_name.items()}

    def load_state_dict(self, states: dict[str, Any]) -> None:
        """Load what :meth:`state_dict` returned, in whatever order the callbacks were then.

        A new callback keeps its initial state. Warn of a state that could be of no callback here,
        or of several.
        """
        fitting = defaultdict(list)  # the states that the same callbacks of a class could own
        for name, saved in states.items():
            kind = _class_in(name)
            mine = [own for own, each in self._by_name.items() if _class_in(own) == kind]
            owners = tuple(own for own in mine if self._by_name[own].owns(saved))
            fitting[kind, owners].append(saved)
        for (kind, owners), found in fitting.items():
            for own, saved in zip(owners, found, strict=False):
                self._by_name[own].load_state_dict(saved)
            if any(found) and not len(owners) == len(found) == 1:  # most callbacks have no state
                fate = "assigned in order; override owns() to tell them apart"
                warnings.warn(
                    f"callbacks: {len(found)} saved states of class {kind} fit {len(owners)} "
                    f"callbacks here and are {fate if owners else 'left out'}",
                    stacklevel=4,
                )


def _class_in(name: str) -> str:
    return name.rpartition(" ")[0]
