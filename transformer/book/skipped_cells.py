"""A hint for whoever runs the cells of a chapter out of order.

Python's own message, that a name is not defined, is right and does not say what to do: the name is
made in a cell above that has not been run, or was made before the kernel was restarted.
"""

from types import TracebackType
from typing import Any

HINT = (
    "Is {name} made in a cell above? Chapters run from the top: choose Run > Run All Above "
    "Selected Cell in Jupyter, Runtime > Run before in Colab."
)


def explain_unknown_names() -> None:
    """Let the notebook print a hint below the traceback of a name that is not defined.

    Does nothing outside of IPython, and nothing to other errors.
    """
    try:
        from IPython import get_ipython
    except ImportError:
        return
    shell = get_ipython()
    if shell is not None:
        shell.set_custom_exc((NameError,), _show_with_hint)


def _show_with_hint(
    shell: Any,
    kind: type[BaseException],
    error: BaseException,
    traceback: TracebackType,
    tb_offset: int | None = None,
) -> None:
    shell.showtraceback((kind, error, traceback), tb_offset=tb_offset)
    name = getattr(error, "name", None)
    # An UnboundLocalError is a NameError, too, and comes from inside of a function.
    if kind is NameError and name:
        print(HINT.format(name=repr(name)))
