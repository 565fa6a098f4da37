"""The first signal asks, the second one acts, and afterwards all is as before."""

import os
import signal
import threading

import pytest

from transformer.training.interrupt import Interruption


def handlers():
    return [signal.getsignal(number) for number in Interruption.SIGNALS]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_only_asks(number):
    before = handlers()
    with Interruption() as interruption:
        assert not interruption.requested
        os.kill(os.getpid(), number)
        assert interruption.requested and interruption.number == number
    assert handlers() == before


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_acts_whichever_it_is(first):
    # A shell starts background jobs with SIGINT ignored; here it must do what it does in front.
    was = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        acts_on_the_second(first)
    finally:
        signal.signal(signal.SIGINT, was)


def acts_on_the_second(first):
    before = handlers()
    with pytest.raises(KeyboardInterrupt), Interruption():
        os.kill(os.getpid(), first)
        assert handlers() == before
        os.kill(os.getpid(), signal.SIGINT)
    assert handlers() == before


def test_handlers_come_back_after_an_error():
    before = handlers()
    with pytest.raises(KeyError), Interruption():
        raise KeyError
    assert handlers() == before


def test_in_another_thread_nothing_is_touched():
    before, seen = handlers(), []

    def run():
        with Interruption() as interruption:
            seen.append((handlers(), interruption.requested))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [(before, False)]
