"""One process is told to stop; all stop at the same step, and seldom ask one another."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch
from accelerate import Accelerator
from torch import Tensor

from transformer.training import agreement
from transformer.training.agreement import SharedStop
from transformer.training.interrupt import Interruption


def accelerator(**attributes) -> Accelerator:
    return Mock(spec=Accelerator, device=torch.device("cpu"), **attributes)


class Together:
    """So many processes, each in a thread, that sum up what they have."""

    def __init__(self, processes: int, seconds_per_step: float, first: float | None):
        self.processes, self.pace = processes, seconds_per_step
        self.first = seconds_per_step if first is None else first
        self.barrier, self.given, self.questions = (
            threading.Barrier(processes),
            [None] * processes,
            0,
        )
        self.clock = [0.0] * processes

    def member(self, rank: int) -> Accelerator:
        def reduce(mine: Tensor, kind: str) -> Tensor:
            assert kind == "sum"
            self.given[rank] = mine
            self.barrier.wait(timeout=20)
            total = torch.stack(self.given).sum(0)
            self.barrier.wait(timeout=20)
            self.questions += rank == 0
            return total

        return accelerator(num_processes=self.processes, reduce=reduce)

    def run(self, steps: int, signal: tuple[int, int], waiting=lambda step: False) -> list[int]:
        """Let all run; ``signal`` is (process, step). Return at which step each ends."""

        def process(rank: int) -> int:
            agreement.time.rank.number = rank
            interruption = Interruption()
            shared = SharedStop(self.member(rank), interruption, 0)
            for step in range(1, steps + 1):
                self.clock[rank] += (self.pace if step > 3 else self.first) * (1 + 0.3 * rank)
                interruption.requested |= (rank, step) == signal
                if shared.requested(step, waiting(step)):
                    return step
            return steps

        with ThreadPoolExecutor(self.processes) as pool:
            return list(pool.map(process, range(self.processes)))


@pytest.fixture
def together(monkeypatch):
    """Makes processes whose clocks show the time of their steps."""

    def make(processes: int, seconds_per_step: float, first: float | None = None) -> Together:
        made, rank = Together(processes, seconds_per_step, first), threading.local()
        clock = SimpleNamespace(rank=rank, perf_counter=lambda: made.clock[rank.number])
        monkeypatch.setattr(agreement, "time", clock)
        return made

    return make


@pytest.mark.parametrize("pace", [0.02, 0.4, 5.0])
def test_all_stop_at_the_same_step_and_soon(together, pace):
    processes = together(3, pace)
    ends = processes.run(500, signal=(2, 300))
    assert len(set(ends)) == 1
    late = (ends[0] - 300) * pace
    assert 0 <= late <= 1.5 * SharedStop.SECONDS


def test_fast_steps_are_seldom_asked_about(together):
    processes = together(2, 0.01)
    assert processes.run(3000, signal=(0, 10**9)) == [3000, 3000]
    assert processes.questions < 60  # 30 seconds of steps


def test_slow_steps_are_asked_about_each_time(together):
    processes = together(2, 3.0)
    assert processes.run(20, signal=(1, 7)) == [7, 7] and processes.questions == 7


def test_a_quick_start_deceives_nobody(together):
    """A program that has only filled the queue of its GPU takes its steps for fast ones."""
    processes = together(2, 2.0, first=0.0001)
    ends = processes.run(500, signal=(1, 4))
    assert ends[0] == ends[1] <= 8


def test_where_all_wait_anyway_they_ask_at_once(together):
    processes = together(2, 0.001)
    assert processes.run(1000, signal=(1, 700), waiting=lambda step: step == 702) == [702, 702]


def test_a_single_process_knows_by_itself():
    interruption = Interruption()
    shared = SharedStop(accelerator(num_processes=1), interruption, 0)
    assert not shared.requested(1, True)
    interruption.requested = True
    assert shared.requested(2, False)


def test_the_clock_is_that_of_the_steps():
    assert agreement.time is time
