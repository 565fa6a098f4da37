"""Ctrl-C and SIGTERM as a polite request: finish the step, save, stop."""

import signal
import threading
from types import FrameType


class Interruption:
    """Within ``with Interruption() as interruption``, the first signal sets ``requested``,
    and ``number`` says which it was.

    A second one acts as if nobody listened, for whoever cannot wait. Outside the main thread no
    handler can be set, and none is.
    """

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.requested = False
        self.number: int | None = None

    def __enter__(self) -> "Interruption":
        self.before = {}
        if threading.current_thread() is threading.main_thread():
            self.before = {number: signal.signal(number, self._ask) for number in self.SIGNALS}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.requested, self.number = True, number
        self.__exit__()  # whichever comes second is no longer ours
