"""The first signal is a request, the second acts."""

import os
import signal

import pytest

from transformer.training.stopping import Interruption


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
