"""A hint for readers who run a cell before the one that makes a name which it uses."""

from types import TracebackType
from typing import Any

HINT = (
    "Is {name} made in a cell above? Chapters run from the top: choose Run > Run All Above "
    "Selected Cell in Jupyter, Runtime > Run before in Colab."
)


def explain_unknown_names() -> None:
    """Let IPython print a hint below the traceback of a name that is not defined."""
    shell = running_shell()
    if shell is not None:
        shell.set_custom_exc((NameError,), _show_with_hint)


def running_shell() -> Any:
    """Return IPython's shell where it runs this code, as in a notebook; else None."""
    try:
        from IPython import get_ipython
    except ImportError:
        return None
    return get_ipython()


def _show_with_hint(
    shell: Any,
    kind: type[BaseException],
    error: BaseException,
    traceback: TracebackType,
    tb_offset: int | None = None,
) -> None:
    shell.showtraceback((kind, error, traceback), tb_offset=tb_offset)
    name = getattr(error, "name", None)
    # An UnboundLocalError is a NameError, too, but comes from inside a function.
    if kind is NameError and name:
        print(HINT.format(name=repr(name)))
