"""Progress bars in notebooks, shown only to a person.

A stored notebook must hold what its code printed and nothing else, so a bar appears only where a
person runs the cell.
"""

import sys
from collections.abc import Iterable
from typing import Any, TypeVar

from tqdm.auto import tqdm

Item = TypeVar("Item")


def in_live_notebook() -> bool:
    """Say whether a person runs this code in a notebook.

    A front end for people accepts input; nbclient, nbval and papermill do not.
    """
    ipython = sys.modules.get("IPython")  # every notebook has loaded it
    kernel: Any = getattr(ipython.get_ipython(), "kernel", None) if ipython else None
    if not hasattr(kernel, "get_parent"):  # no kernel, or no Jupyter kernel
        return False
    return bool(kernel.get_parent("shell").get("content", {}).get("allow_stdin", False))


def progress(items: Iterable[Item]) -> Iterable[Item]:
    """Loop over items; in a live notebook, show a bar once the loop has lasted a second."""
    return tqdm(items, delay=1, leave=False) if in_live_notebook() else items
