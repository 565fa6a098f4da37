"""The first signal is a request, the second acts; all processes stop at the same step."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch
from accelerate import Accelerator
from torch import Tensor

from transformer.training import stopping
from transformer.training.stopping import Interruption, SharedStop


def handlers():
    return [signal.getsignal(number) for number in Interruption.SIGNALS]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_a_request_and_the_second_acts(number):
    # A shell starts background jobs with SIGINT ignored; here it must act as in the foreground.
    was = signal.signal(signal.SIGINT, signal.default_int_handler)
    before = handlers()
    try:
        with pytest.raises(KeyboardInterrupt), Interruption() as interruption:
            assert not interruption.requested
            os.kill(os.getpid(), number)
            assert interruption.requested and interruption.number == number
            assert handlers() == before
            os.kill(os.getpid(), signal.SIGINT)
        assert handlers() == before
    finally:
        signal.signal(signal.SIGINT, was)


# ---------------------------------------------------------------------- several processes


class Together:
    """Simulate processes as threads, each with a clock that shows the time of its steps."""

    def __init__(self, monkeypatch, processes: int, seconds_per_step: float, first: float | None):
        self.processes, self.pace = processes, seconds_per_step
        self.first = seconds_per_step if first is None else first
        self.barrier, self.given = threading.Barrier(processes), [None] * processes
        self.exchanges, self.clock, self.rank = 0, [0.0] * processes, threading.local()
        clock = SimpleNamespace(perf_counter=lambda: self.clock[self.rank.number])
        monkeypatch.setattr(stopping, "time", clock)

    def member(self, rank: int) -> Accelerator:
        def reduce(mine: Tensor, kind: str) -> Tensor:
            assert kind == "sum"
            self.given[rank] = mine
            self.barrier.wait(timeout=20)
            total = torch.stack(self.given).sum(0)
            self.barrier.wait(timeout=20)
            self.exchanges += rank == 0
            return total

        device = torch.device("cpu")
        return Mock(spec=Accelerator, device=device, num_processes=self.processes, reduce=reduce)

    def run(self, steps: int, signal: tuple[int, int], waiting=lambda step: False) -> list[int]:
        """Run all; ``signal`` is (process, step). Return the last step of each."""

        def process(rank: int) -> int:
            self.rank.number = rank
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
    return lambda processes, pace, first=None: Together(monkeypatch, processes, pace, first)


@pytest.mark.parametrize("pace", [0.02, 0.4, 5.0])
def test_all_stop_at_the_same_step_and_soon(together, pace):
    ends = together(3, pace).run(500, signal=(2, 300))
    assert len(set(ends)) == 1
    assert 0 <= (ends[0] - 300) * pace <= 1.5 * SharedStop.SECONDS


def test_fast_steps_exchange_seldom_and_slow_ones_each_time(together):
    processes = together(2, 0.01)
    assert processes.run(3000, signal=(0, 10**9)) == [3000, 3000]
    assert processes.exchanges < 60  # in 30 seconds
    processes = together(2, 3.0)
    assert processes.run(20, signal=(1, 7)) == [7, 7] and processes.exchanges == 7


def test_fast_first_steps_are_not_misleading(together):
    """The first steps seem fast while they only fill the queue of a GPU."""
    ends = together(2, 2.0, first=0.0001).run(500, signal=(1, 4))
    assert ends[0] == ends[1] <= 8


def test_steps_that_synchronise_anyway_exchange(together):
    processes = together(2, 0.001)
    assert processes.run(1000, signal=(1, 700), waiting=lambda step: step == 702) == [702, 702]
