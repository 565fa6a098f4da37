"""Write checkpoints while training goes on: copied to the CPU's memory first, to the disk later."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Any

import numpy as np
import torch

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
        """Yield the labels of the jobs that have ended, each once, in order.

        Raises:
            Exception: the error of the job that failed.
        """
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
