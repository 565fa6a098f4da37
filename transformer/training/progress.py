"""A progress bar for cells that take their time, where somebody is there to see it.

In a notebook that a reader runs, a loop over :func:`progress` shows a bar once it has lasted a
second, and takes it away at the end. Loops inside loops share one bar, where tqdm in a notebook
without widgets writes a line for each. Elsewhere, and where a tool executes the notebook, nothing
is shown, so that stored outputs stay what the code printed.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

Item = TypeVar("Item")

SHOW_AFTER, SHOW_EVERY = 1.0, 0.25  # seconds


def progress(items: Collection[Item]) -> Iterable[Item]:
    """Loop over items and show how far it is.

    Args:
        items: what to loop over; a list, a range, anything with a length.

    Returns:
        The items themselves where there is nobody to show a bar to, else an iterator of them.
    """
    return items if _live_shell() is None else _follow(items)


def _follow(items: Collection[Item]) -> Iterator[Item]:
    with counting(len(items)) as advance:
        for item in items:
            yield item
            advance()


@contextmanager
def counting(total: int, hide: bool = False) -> Iterator[Callable[[], None]]:
    """Show how far something is that is not a loop over items.

    Args:
        total: how often the function that is given will be called.
        hide: show nothing, whoever is there.
    """
    shell = None if hide else _live_shell()
    if shell is None:
        yield lambda: None
        return
    if _bar.cell != shell.execution_count:  # a loop that was never finished is not ours
        _bar.begin(shell.execution_count)
    loop = _bar.enter(total)
    try:
        yield lambda: _bar.advance(loop)
    finally:
        _bar.leave(loop)


def _live_shell() -> Any:
    """The notebook's shell if a person runs it, else None.

    A front end that a person uses can be asked for input; nbclient, nbval and papermill cannot.
    """
    try:
        from IPython import get_ipython
    except ImportError:
        return None
    shell = get_ipython()
    return shell if getattr(getattr(shell, "kernel", None), "_allow_stdin", False) else None


@dataclass(eq=False)
class _Loop:
    total: int
    done: int = 0


@dataclass
class _Bar:
    """The one bar of a cell. Each loop counts what it has done, the outermost first."""

    cell: int | None = None
    loops: list[_Loop] = field(default_factory=list)
    started: float = 0.0
    shown: float = 0.0
    farthest: float = 0.0
    display: Any = None

    def begin(self, cell: int) -> None:
        self.cell, self.loops, self.display = cell, [], None

    def enter(self, total: int) -> _Loop:
        if not self.loops:
            self.started, self.farthest = time.monotonic(), 0.0
        self.loops.append(_Loop(total))
        return self.loops[-1]

    def advance(self, loop: _Loop) -> None:
        loop.done += 1
        # A second loop inside one item begins anew; a bar that goes back would only puzzle.
        self.farthest = max(self.farthest, self.share())
        now = time.monotonic()
        if now - self.started >= SHOW_AFTER and now - self.shown >= SHOW_EVERY:
            self.shown = now
            self.draw(self.farthest, now - self.started)

    def leave(self, loop: _Loop) -> None:
        # Whatever is inside has ended too, be it by an error.
        if loop in self.loops:
            del self.loops[self.loops.index(loop) :]
        if not self.loops and self.display is not None:
            self.display.update({"text/plain": ""}, raw=True)
            self.display = None

    def share(self) -> float:
        """How much of the outermost loop is done: a loop inside fills a part of one item of it."""
        share = 0.0
        for loop in reversed(self.loops):
            share = min((loop.done + share) / loop.total, 1.0) if loop.total else 1.0
        return share

    def draw(self, share: float, seconds: float) -> None:
        left = seconds * (1 - share) / max(share, 1e-9)
        text = f"{share:.0%}, about {max(left, 1):.0f} s left"
        bundle = {
            "text/plain": text,
            "text/html": f'<progress value="{share:.3f}" aria-label="Progress of this cell">'
            f"</progress> {text}",
        }
        if self.display is None:
            from IPython.display import display

            self.display = display(bundle, raw=True, display_id=True)
        else:
            self.display.update(bundle, raw=True)


_bar = _Bar()
