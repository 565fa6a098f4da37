"""The API reference: which modules there are, and the directives that document them."""

import ast
from collections.abc import Iterator
from pathlib import Path

#: What the reference documents. Studies have pages of their own.
PACKAGES = ("transformer", "transformer_book", "transformer_book.studies")
# Modules of the book whose names begin so are run, or serve one that is run.
_SCRIPTS = ("record", "ship", "bench", "peer")

_ENTRY = """## `{0}`

```{{eval-rst}}
.. automodule:: {0}
   :members:
   :ignore-module-all:
```
"""


def modules(root: Path, package: str = "transformer") -> list[tuple[str, ast.Module]]:
    """Read the modules of a package that define something public with a docstring, by name."""
    root = root / "book" if package.startswith("transformer_book") else root
    folder = root.joinpath(*package.split("."))
    paths = [*folder.rglob("*.py")] or [folder.with_suffix(".py")]
    if not paths[0].exists():
        raise FileNotFoundError(f"there is no package {package}")
    found = []
    for path in paths:
        name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        parts = name.split(".")
        # The command line explains itself, and so do the scripts of the book; studies have pages
        # of their own.
        is_script = parts[0] == "transformer_book" and parts[-1].startswith(_SCRIPTS)
        is_script |= package == "transformer_book" and parts[1:2] == ["studies"]
        if any(part.startswith("_") for part in parts) or parts[1:2] == ["cli"] or is_script:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if any(documented(tree.body)):
            found.append((name, tree))
    return sorted(found, key=lambda item: item[0])


def documented(body: list[ast.stmt]) -> Iterator[ast.ClassDef | ast.FunctionDef]:
    """Find the public classes and functions with a docstring among some statements."""
    for node in body:
        named = isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name[0] != "_"
        if named and ast.get_docstring(node):
            yield node


def entries(root: Path, package: str, *first: str) -> str:
    """Write an entry for each module of a package."""
    names = [name for name, _ in modules(root, package)]
    ahead = [f"{package}.{name}" for name in first]
    if missing := set(ahead) - set(names):
        raise ValueError(f"{package} has no documented {', '.join(sorted(missing))}")
    rest = [name for name in names if name not in ahead]
    return "\n".join(_ENTRY.format(name) for name in [*ahead, *rest])


def shorten(app: object, what: str, name: str, thing: object, options: object, lines: list) -> None:
    """Keep the first paragraph of the docstrings of the book's half."""
    if name.startswith("transformer_book.") and "" in lines:
        del lines[lines.index("") :]


def keep_colons(
    app: object, what: str, name: str, thing: object, options: object, lines: list
) -> None:
    """Undo napoleon's reading of "Tag: ..." in the docstring of an attribute as its type."""
    kinds = [line for line in lines if line.startswith(":type: ")]
    if what in ("attribute", "data", "property") and kinds:
        lines.remove(kinds[0])
        lines[0] = f"{kinds[0].removeprefix(':type: ')}: {lines[0]}"
