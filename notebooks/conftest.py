"""How nbval runs the notebooks: what it leaves uncompared, and a second try for their kernels."""

from collections.abc import Callable

TRIES = 3


def pytest_collectstart(collector):
    """Leave pictures and markup uncompared (their text form is compared); start kernels again."""
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += ("text/html", "image/svg+xml")
        collector.setup = tried_again(collector.setup)


def tried_again(start: Callable[[], None]) -> Callable[[], None]:
    """Call ``start`` up to three times until it raises no RuntimeError.

    A kernel dies at its start when another program has taken one of its ports in the meantime.
    """

    def setup() -> None:
        for _ in range(TRIES - 1):
            try:
                return start()
            except RuntimeError as died:
                print(f"A kernel is started again: {died}")
        return start()

    return setup
