"""Every public name of the package: where it stands, what of the paper it belongs to, its shapes.

Read from the files and not by importing them, so that the page about the code has the line of
each name, and a module that needs a GPU or a library that is missing is on it, too.

Paper: all sections
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from transformer.book.source import ROOT

# Explained by ``transformer --help``.
_LEFT_OUT = ("cli",)
_SHAPED = {
    "Bool",
    "Float",
    "Inexact",
    "Int",
    "Int32",
    "Int64",
    "Num",
    "Real",
    "Shaped",
    "UInt",
    "UInt16",
}
_TENSORS = {"Tensor", "ndarray"}
# Weights by name have the model's shapes, a function's are those of its arguments, and a type
# that is compared with has none.
_EXEMPT = {"Callable", "Mapping", "dict", "type"}


@dataclass(frozen=True)
class PublicName:
    """A public class, function, method or property.

    Args:
        module: such as "transformer.model.masks".
        name: within the module, such as "Transformer.encode".
        line: of the definition, from 1.
        docstring: as Python reads it, without the indentation.
        unshaped: parameters and fields (or "return") that hold tensors whose annotation does not
            give the shape.
        around: the docstring of the class that a method belongs to.
        is_property: the book's pages of source know the class and not the property.

    Paper: all sections
    """

    module: str
    name: str
    line: int
    docstring: str
    unshaped: tuple[str, ...] = ()
    around: str = ""
    is_property: bool = False

    @property
    def full_name(self) -> str:
        """The name by which the API reference knows it.

        Paper: all sections
        """
        return f"{self.module}.{self.name}"

    @property
    def paper(self) -> str | None:
        """The text behind ``Paper:`` in the docstring; None if there is none.

        Paper: all sections
        """
        return paper_line(self.docstring)

    @property
    def says_its_shapes(self) -> bool:
        """Whether the shape of every tensor stands in the annotations or in the docstring."""
        return not self.unshaped or any(map(_mentions_a_shape, (self.docstring, self.around)))


def paper_line(docstring: str) -> str | None:
    """Return what a docstring says behind ``Paper:``, on one line; None if it does not say.

    Paper: all sections
    """
    found = re.search(r"^Paper: *(\S.*?)(?=\n\s*\n|\Z)", docstring, re.M | re.S)
    return " ".join(found[1].split()) if found else None


def public_names(package: Path = ROOT / "transformer") -> list[PublicName]:
    """Read all public names of a package that have a docstring, or should have one.

    Overrides of operators, and the members of a protocol that its class describes, are none.

    Args:
        package: its folder.

    Returns:
        In the order of the modules' names, and in each module in the order of the file.

    Paper: all sections
    """
    found: list[PublicName] = []
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        if parts[1] in _LEFT_OUT or parts[-1].startswith("__"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found += _definitions(tree.body, ".".join(parts), "", "")
    return found


def _definitions(
    body: list[ast.stmt], module: str, inside: str, around: str
) -> Iterator[PublicName]:
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.startswith("_"):
            continue
        if any("overload" in ast.unparse(how) for how in node.decorator_list):
            continue  # the definition that follows them has the docstring
        name, docstring = inside + node.name, ast.get_docstring(node) or ""
        if not isinstance(node, ast.ClassDef):
            is_property = any("property" in ast.unparse(how) for how in node.decorator_list)
            yield PublicName(
                module, name, node.lineno, docstring, _unshaped(node), around, is_property
            )
            continue
        functions = [f for f in node.body if isinstance(f, ast.FunctionDef)]
        constructor = [f for f in functions if f.name == "__init__"]
        fields = [f for f in node.body if isinstance(f, ast.AnnAssign) and _is_bare(f.annotation)]
        missing = tuple(ast.unparse(f.target) for f in fields)
        missing += tuple(gap for function in constructor for gap in _unshaped(function))
        yield PublicName(module, name, node.lineno, docstring, missing)
        if not any("Protocol" in ast.unparse(base) for base in node.bases):
            yield from _definitions(node.body, module, f"{name}.", docstring)


def _unshaped(function: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[str, ...]:
    arguments = [node for node in ast.walk(function.args) if isinstance(node, ast.arg)]
    bare = [argument.arg for argument in arguments if _is_bare(argument.annotation)]
    return tuple(bare + ["return"] * _is_bare(function.returns))


def _is_bare(annotation: ast.AST | None) -> bool:
    """Whether there is a tensor in it without a shape."""
    if annotation is None:
        return False
    if isinstance(annotation, ast.Subscript):
        outer = ast.unparse(annotation.value).rpartition(".")[2]
        if outer in _SHAPED | _EXEMPT:
            return False
    if isinstance(annotation, ast.Name):
        return annotation.id in _TENSORS
    if isinstance(annotation, ast.Attribute):
        return annotation.attr in _TENSORS
    return any(map(_is_bare, ast.iter_child_nodes(annotation)))


def _mentions_a_shape(docstring: str) -> bool:
    """Whether it speaks of a shape, gives one such as (B, T), or leads to a text that does."""
    size = r"\*?\w+(?: \* \w+)?"
    return bool(re.search(rf"\bshapes?\b|:func:|:meth:|\({size}(?:, {size})+\)", docstring))
