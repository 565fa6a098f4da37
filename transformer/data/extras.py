"""Optional packages: the extras of this one."""

from importlib import import_module
from typing import Any


def import_extra(user: str, extra: str, *modules: str) -> Any:
    """Import modules of optional packages and return the first.

    Raises:
        ModuleNotFoundError: if a package is missing; the message says that ``user`` needs it, and
            which extra to install.
    """
    try:
        return [import_module(module) for module in modules][0]
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{user} needs the package {error.name}: pip install 'transformer-book[{extra}]'",
            name=error.name,
        ) from None
