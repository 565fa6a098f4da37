"""What a run reports: its curve in a file, lines for ``logging``, trackers and a progress bar."""

import json
import logging
import math
import time
import warnings
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

from accelerate import Accelerator
from accelerate.tracking import GeneralTracker, get_available_trackers
from accelerate.utils import LoggerType
from tqdm.auto import tqdm

from transformer.data.progress import in_live_notebook
from transformer.saving.files import cannot_write, write_atomically
from transformer.saving.locate import CURVE

_logger = logging.getLogger(__name__)

#: A tracker of Accelerate, or the name of one.
Tracker: TypeAlias = str | GeneralTracker


class Curve:
    """Write numbers to ``curve.jsonl`` during a run, one JSON object per line.

    Lines beyond ``step``, left by a killed run, are dropped because they will be written again.
    """

    def __init__(self, folder: Path, step: int = 0):
        self.path = Path(folder) / CURVE
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = [line for line in read_curve(self.path) if line["step"] <= step]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        write_atomically(self.path, lambda p: p.write_text(text, encoding="utf-8"))

    def write(self, step: int, **numbers: int | float) -> None:
        """Append one line; raise OSError if it cannot be written."""
        try:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps(dict(step=step, **numbers)) + "\n")
        except OSError as error:
            raise cannot_write(self.path, error) from error


def read_curve(path: Path | str) -> list[dict[str, int | float]]:
    """Read the lines of a ``curve.jsonl`` in order; damaged and unfinished ones are left out."""
    if not Path(path).exists():
        return []
    lines = []
    for line in Path(path).read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            numbers = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(numbers, dict) and type(numbers.get("step")) is int:
            lines.append(numbers)
    return lines


class Report:
    """Report one call of ``fit``, within ``with report:``.

    The main process writes the curve, logs at INFO level and shows a progress bar.
    """

    def __init__(
        self, accelerator: Accelerator, folder: Path, max_steps: int, progress: bool | None
    ):
        self.accelerator, self.folder, self.max_steps = accelerator, folder, max_steps
        self.main = accelerator.is_main_process
        show = progress if progress is not None else (in_live_notebook() or None)
        self.hide = not self.main or (None if show is None else not show)

    def start(self, step: int, settings: dict[str, Any]) -> None:
        """Open the curve, the trackers and the bar."""
        self.began = self.step = step
        self.since = time.perf_counter()
        self.curve = Curve(self.folder, step) if self.main else None
        _start_trackers(self.accelerator, self.folder, step, settings)
        self.bar = tqdm(
            total=self.max_steps,
            initial=step,
            unit="step",
            disable=self.hide,
            dynamic_ncols=True,
        )

    def __enter__(self) -> "Report":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if hasattr(self, "bar"):
            self.bar.close()
        for tracker in self.accelerator.trackers:
            with suppress(Exception) if error else nullcontext():  # the first error counts
                tracker.finish()
        self.accelerator.trackers = []

    def advance(self) -> None:
        """Count one more step."""
        self.step += 1
        self.bar.update()

    def line(self, minutes: float, numbers: dict[str, float]) -> None:
        """Report the training numbers of the steps since the last line."""
        self._write(minutes, numbers)
        loss, speed = numbers["loss"], numbers["tokens_per_second"]
        self.bar.set_postfix_str(f"loss {loss:.3f}, {speed:,.0f} tokens/s")
        seconds = (time.perf_counter() - self.since) / max(self.step - self.began, 1)
        left = duration(seconds * (self.max_steps - self.step))
        self._log(
            f"loss {loss:.3f}, learning rate {numbers['learning_rate']:.2e}, "
            f"{speed:,.0f} tokens/s, {left} left"
        )

    def validation(self, minutes: float, numbers: dict[str, float]) -> None:
        """Report the numbers of a validation; warn about those that are not finite."""
        finite = {name: value for name, value in numbers.items() if math.isfinite(value)}
        self._write(minutes, finite)
        for name in numbers.keys() - finite.keys():
            notice = f"{name} is {numbers[name]} at step {self.step}; it is left out of the curve"
            if self.main:
                warnings.warn(notice, stacklevel=4)
        self._log(text := ", ".join(f"{name} {value:.2f}" for name, value in numbers.items()))
        if not self.bar.disable and not _logger.isEnabledFor(logging.INFO):
            tqdm.write(f"step {self.step}: {text}", file=self.bar.fp)

    def checkpoint(self, path: Path, step: int) -> None:
        """Report that a file was written, with the run as it was at a step."""
        self._log(f"saved {path.relative_to(self.folder)}", step)

    def _write(self, minutes: float, numbers: dict[str, float]) -> None:
        if self.curve and numbers:
            self.curve.write(self.step, minutes=minutes, **numbers)
        if numbers:
            self.accelerator.log(dict(minutes=minutes, **numbers), step=self.step)

    def _log(self, text: str, step: int | None = None) -> None:
        if self.main:
            number = self.step if step is None else step
            _logger.info("step %s of %s: %s", f"{number:,}", f"{self.max_steps:,}", text)


def duration(seconds: float) -> str:
    """Write a number of seconds with its unit, such as "12 minutes" or "2.0 hours"."""
    if seconds < 90:
        return f"{seconds:.0f} second{'s' * (round(seconds) != 1)}"
    if seconds < 5400:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:,.1f} hours"


def require_trackers(trackers: Sequence[Tracker]) -> None:
    """Refuse trackers that Accelerate does not know, or would skip as not installed."""
    if isinstance(trackers, str):
        raise TypeError(
            f"trackers must be a sequence of names or trackers, such as ({trackers!r},)"
        )
    known = [str(kind) for kind in LoggerType if kind != LoggerType.ALL]
    for tracker in trackers:
        if isinstance(tracker, GeneralTracker):
            continue
        if not isinstance(tracker, str):
            kind = type(tracker).__name__
            raise TypeError(f"trackers must be names or trackers of Accelerate, got a {kind}")
        if tracker not in known:
            raise ValueError(f"unknown tracker {tracker!r}; known are {', '.join(known)}")
        if tracker not in map(str, get_available_trackers()):
            package = tracker.replace("_", "-")
            raise ModuleNotFoundError(f"{tracker} is not installed: pip install {package}")


def _start_trackers(
    accelerator: Accelerator, folder: Path, step: int, settings: dict[str, Any]
) -> None:
    if not accelerator.is_main_process or not accelerator.log_with:
        return
    options: dict[str, dict[str, Any]] = dict(
        tensorboard=dict(purge_step=step + 1),  # a killed run has written beyond its checkpoint
        wandb=dict(name=folder.resolve().name, dir=str(folder), resume="allow"),
    )
    earlier = sorted((folder / "wandb").glob("*run-*-*"))
    if step and earlier:
        options["wandb"]["id"] = earlier[-1].name.rpartition("-")[2]
    accelerator.init_trackers("transformer", init_kwargs=options)
    if not step:
        plain = (bool, int, float, str)
        values = {k: v if isinstance(v, plain) else str(v) for k, v in settings.items()}
        for tracker in accelerator.trackers:
            tracker.store_init_configuration(values)
