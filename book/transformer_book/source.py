"""Show source code of the package in a notebook, read from the file that Python runs."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

PACKAGES = ("transformer", "transformer_book")


@dataclass(frozen=True)
class Source:
    """A piece of source code; a notebook shows it highlighted, under its file and lines."""

    code: str
    path: str
    first_line: int
    last_line: int

    @property
    def place(self) -> str:
        """File and lines, in words."""
        return f"{self.path}, lines {self.first_line}-{self.last_line}"

    def _repr_markdown_(self) -> str:
        return f"`{self.place}`\n\n```python\n{self.code}\n```"

    def __repr__(self) -> str:
        return f"# {self.place}\n{self.code}"


def show_source(thing: Callable[..., Any], docstring: bool = True) -> Source:
    """Read the source of a class, function or method of this package, as a notebook shows it."""
    thing = inspect.unwrap(thing)
    try:
        file = Path(inspect.getsourcefile(thing) or "").resolve()
        lines, first = inspect.getsourcelines(thing)
    except (TypeError, OSError) as error:
        raise TypeError(
            f"thing must be a class, function or method written in Python, got {thing!r}"
        ) from error
    package = thing.__module__.partition(".")[0]
    if package not in PACKAGES:
        raise ValueError(f"thing must be defined in {' or '.join(PACKAGES)}, got {thing!r}")
    root = Path(import_module(package).__file__ or "").resolve().parent.parent
    code = textwrap.dedent("".join(lines)).rstrip()
    return Source(
        code=code if docstring else _without_docstring(code),
        path=file.relative_to(root).as_posix(),
        first_line=first,
        last_line=first + len(lines) - 1,
    )


def _without_docstring(code: str) -> str:
    definition = ast.parse(code).body[0]
    assert isinstance(definition, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    if ast.get_docstring(definition) is None:
        return code
    text = definition.body[0]
    lines = code.splitlines()
    end = text.end_lineno or text.lineno
    if lines[end : end + 1] == [""]:  # the blank line between a docstring and the code goes too
        end += 1
    return "\n".join(lines[: text.lineno - 1] + lines[end:])
