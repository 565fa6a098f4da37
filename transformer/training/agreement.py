"""Several processes stop at the same step, and seldom ask one another whether to."""

import time

import torch
from accelerate import Accelerator

from transformer.training.interrupt import Interruption


class SharedStop:
    """Tells all processes, at the same step, that one of them was asked to stop.

    To ask the others is to wait for the device and for the slowest of them. So it is done when the
    run waits anyway, for a line of the curve, and between two lines about once a second. How many
    steps that is they find out together: one at first, then never more than twice as many as
    before. A single process asks nobody.

    Args:
        accelerator: of this process.
        interruption: what this process was asked.
        step: where the run stands.
    """

    #: Seconds between two questions, about.
    SECONDS = 1.0

    def __init__(self, accelerator: Accelerator, interruption: Interruption, step: int):
        self.accelerator, self.interruption = accelerator, interruption
        self.asked, self.steps, self.since = step, 1, time.perf_counter()

    def requested(self, step: int, waiting: bool) -> bool:
        """Say whether to stop after this step.

        Args:
            step: that is done; each process calls this after each of its steps.
            waiting: the processes wait for one another at this step anyway; all say the same.
        """
        processes = self.accelerator.num_processes
        if processes == 1:
            return self.interruption.requested
        if not waiting and step < self.asked + self.steps:
            return False
        micro = int(1e6 * (time.perf_counter() - self.since))
        # Whole numbers, so that all processes get exactly the same sums, and decide alike.
        mine = [int(self.interruption.requested), micro]
        device = self.accelerator.device
        told, spent = self.accelerator.reduce(torch.tensor(mine, device=device), "sum").tolist()
        done = step - self.asked
        affordable = int(self.SECONDS * 1e6 * processes * done / max(spent, 1))
        self.asked, self.steps = step, max(1, min(affordable, 2 * self.steps))
        self.since = time.perf_counter()
        return told > 0
