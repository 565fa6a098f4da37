"""A run that its folder remembers: claimed by one process, resumed, and saved by a thread."""

import math
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather_object, set_seed
from filelock import FileLock

from transformer.data.batching import TokenBatches
from transformer.saving.locate import STATE
from transformer.training import run_folder, state
from transformer.training.callbacks import Callbacks
from transformer.training.curve import Report
from transformer.training.step import Stepper
from transformer.training.stopping import Interruption, anywhere

_PINNING = "cuda"  # the type of device whose copies to pinned memory the host need not wait for


def host_copy(values: Any) -> Any:
    """Copy tensors to the CPU's memory, with the dicts and lists that hold them.

    Tensors on a CUDA device are copied to pinned memory, and the host waits for the device once.
    """
    devices: set[torch.device] = set()
    copied = _copy(values, devices)
    for device in devices:
        torch.cuda.synchronize(device)
    return copied


def _copy(value: Any, devices: set[torch.device]) -> Any:
    """Copy, and add the CUDA devices whose copies are not finished to ``devices``."""
    if isinstance(value, dict):
        return {_copy(name, devices): _copy(each, devices) for name, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_copy(each, devices) for each in value)
    if isinstance(value, np.generic):
        return value.item()  # torch.load would refuse it
    if not torch.is_tensor(value):
        return value
    value = value.detach()
    if value.device.type != _PINNING:
        return value.to("cpu", copy=True)
    devices.add(value.device)
    pinned = torch.empty_like(value, device="cpu", pin_memory=True)
    return pinned.copy_(value, non_blocking=True)


class Writer:
    """Run jobs in one background thread, in order, within ``with Writer() as writer:``.

    After a job has failed no other starts. The end of the block waits for the thread, and raises
    the error of a failed job unless another error ends the block.
    """

    #: Jobs that may be unfinished: the best weights, a checkpoint and the state of one step.
    UNFINISHED = 3

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "writer")
        self._jobs: deque[tuple[Future[None], Any]] = deque()  # with their labels
        self._failed = False

    def submit(self, job: Callable[[], None], label: Any = None) -> None:
        """Let the thread run a job; wait first while too many are unfinished."""
        unfinished = [each for each, _ in self._jobs if not each.done()]
        if len(unfinished) >= self.UNFINISHED:
            wait(unfinished[:1])
        self._jobs.append((self._thread.submit(self._run, job), label))

    def _run(self, job: Callable[[], None]) -> None:
        if self._failed:
            raise RuntimeError("an earlier job has failed")
        try:
            job()
        except BaseException:
            self._failed = True
            raise

    def finished(self, wait_for_all: bool = False) -> Iterator[Any]:
        """Yield the labels of jobs that have ended, each once, in order; raise what one raised."""
        while self._jobs and (wait_for_all or self._jobs[0][0].done()):
            job, label = self._jobs.popleft()
            job.result()
            if label is not None:
                yield label

    def __enter__(self) -> "Writer":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._thread.shutdown()
        if error is None:
            for _ in self.finished():
                pass


class KeptRun(Stepper):
    """A stepper with a folder, from which a run goes on as if it had never stopped."""

    batches: TokenBatches
    #: Attributes that are saved with the state.
    PROGRESS = ("step", "epoch", "position", "tokens", "seconds", "best")

    def keep_in(self, folder: Path, callbacks: Callbacks, progress: bool | None) -> None:
        """Begin a run at step 0; no file is touched before :meth:`resume`."""
        self.folder, self.state_file, self.callbacks = folder, folder / STATE, callbacks
        self.report = Report(self.accelerator, folder, self.config.max_steps, progress)
        self.step = self.epoch = self.position = 0
        self.tokens = 0  # real target tokens seen so far
        self.seconds = 0.0  # spent training, over all calls of fit()
        self.best = math.inf
        self.saved_at, self.state_seconds = 0, 0.0  # when weights and state were last saved
        self.resumed = self.fitting = self.stop_requested = self.stopping = False
        self.interruption = Interruption()
        self.claim: FileLock | None = None
        self.writer = Writer()

    def checkpoints(self) -> list[Path]:
        """Return the weight files of the last checkpoints, oldest first."""
        return run_folder.checkpoints(self.folder)

    def resume(self) -> None:
        """Claim the folder and load the state of the run that it holds, if it holds one.

        ``fit`` calls it; call it yourself to know ``step`` beforehand. Further calls before
        ``fit`` do nothing. The claim lasts until ``fit`` ends or :meth:`release` is called.

        Raises:
            ValueError: if the folder holds a run of another configuration or only damaged states.
            OSError: if the folder cannot be read or written, or another process or Trainer has
                claimed it.
        """
        if self.resumed:
            return
        # Before anything is read or removed: another process may be writing there.
        if self.accelerator.is_main_process:
            self.claim = run_folder.claim_folder(self.folder)
        try:
            self._load_state()
        except BaseException:
            self.release()
            raise
        # Code between here and the first step may draw random numbers.
        self.random = state.get_random_state(self.accelerator.device)
        self.resumed = True

    def release(self) -> None:
        """Give up the folder that :meth:`resume` has claimed; during ``fit`` it stays claimed.

        ``fit`` claims it again, and loads the state that is there by then.
        """
        if self.fitting:
            return
        if self.claim is not None:
            self.claim.release()
        self.claim, self.resumed = None, False

    def _load_state(self) -> None:
        found = run_folder.load_newest_state(self.folder)
        run_folder.require_shared(gather_object([found and found[1].name]), self.folder)
        if found is None:
            if not self.step:  # otherwise an error ended fit() before the first state was saved
                if self.accelerator.is_main_process:
                    run_folder.warn_of_checkpoints(self.folder)
                # Dropout differs between processes; the initial weights are equal already.
                set_seed(self.config.seed, device_specific=True)
            return
        saved, file = found
        run_folder.require_same(self.identity(), saved["config"], self.folder)
        try:
            state.restore(
                self.accelerator, self.model, self.trained, self.optimizer, self.scaler, saved
            )
            for name in self.PROGRESS:
                setattr(self, name, saved["progress"][name])
            self.saved_at = self.step
        except (AttributeError, LookupError, RuntimeError, TypeError) as error:
            reason = " ".join(str(error).split())[:120]
            raise ValueError(f"{file} is not the state of a run: {reason}") from None
        # Errors of the user's own code keep their traceback.
        self.schedule.load_state_dict(saved.get("schedule", {}))
        self.callbacks.load_state_dict(saved.get("callbacks", {}))
        self.accelerator.wait_for_everyone()  # until it has read the file
        if self.accelerator.is_main_process:
            run_folder.settle_on(file)

    def identity(self) -> dict[str, Any]:
        pairs, processes = self.batches.pairs, self.accelerator.num_processes
        mine = state.identity(self.config, self.model, pairs, processes)
        return mine | self.schedule.identity()

    def save(self, weights: bool, ending: bool) -> None:
        """Save the weights, and the state if the run ends or it is time; each process must call it.

        A callback at the checkpoint may end the run.
        """
        minutes, main = self.config.state_minutes, self.accelerator.is_main_process
        spent = self.seconds - self.state_seconds  # equal in all processes
        due = ending or (weights if minutes is None else spent >= 60 * minutes)
        if not weights and not due:
            return
        self.gather_weights()
        copied = host_copy(self.model.state_dict()) if main else {}
        path = self.folder / f"checkpoints/step-{self.step:08d}.safetensors"
        if weights and main:
            keep_last = self.config.keep_last
            job = partial(run_folder.keep_weights, copied, path, keep_last)
            self.writer.submit(job, (path, self.step))
        if weights and self.callbacks.override("on_checkpoint"):
            self.report_written(wait=True)
            self.callbacks.call("on_checkpoint", self, path)
            self.stopping = anywhere(self.stop_requested, self.accelerator)
        if due or self.stopping:
            parts = state.collect(self.accelerator, self.optimizer, self.scaler)
            if main:
                progress = {name: getattr(self, name) for name in self.PROGRESS}
                parts = host_copy(parts | dict(progress=progress) | self.own_state())
                whole = dict(config=self.identity(), model=copied) | parts
                label = None if weights else (self.state_file, self.step)
                self.writer.submit(partial(run_folder.keep_state, whole, self.folder), label)
            self.state_seconds = self.seconds
        self.saved_at = self.step

    def report_written(self, wait: bool = False) -> None:
        """Report the files that have been written since; raise if one could not be.

        With ``wait``, for the thread and for the main process, each process must call this.
        """
        for path, step in self.writer.finished(wait):
            self.report.checkpoint(path, step)
        if wait:
            self.accelerator.wait_for_everyone()

    def own_state(self) -> dict[str, Any]:
        """Return the states of the user's own parts: the scheduler and the callbacks."""
        callbacks = self.callbacks.state_dict()
        return dict(schedule=self.schedule.state_dict(), callbacks=callbacks)
