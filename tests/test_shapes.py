"""Every public tensor of the library has its shape in the annotation or in the docstring."""

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "transformer"
BOOK = ("book", "lab")
# Annotations such as Float[Tensor, 'B T']; weights by name have the shapes of the model, and a
# function's tensors are those of its own arguments.
SHAPED = re.compile(r"\w+\[[\w.]+, ['\"][^'\"]*['\"]\]|\b(Callable|Mapping|dict|type)\[.*\]")
SIZE = r"\*?\w+(?: \* \w+)?"
SAID = re.compile(rf"\bshapes?\b|:func:|:meth:|\({SIZE}(?:, {SIZE})+,?\)")


def is_bare(annotation):
    text = SHAPED.sub("", ast.unparse(annotation)) if annotation else ""
    return bool(re.search(r"\b(Tensor|ndarray)\b", text))


def silent(body, around=""):
    for node in body:
        name = getattr(node, "name", "_")
        hidden = name.startswith("_") and not (around and name == "__init__")
        if hidden or not isinstance(node, ast.ClassDef | ast.FunctionDef):
            continue
        text = around + (ast.get_docstring(node) or "")
        if isinstance(node, ast.ClassDef):
            fields = [f.annotation for f in node.body if isinstance(f, ast.AnnAssign)]
            yield from silent(node.body, text or " ")
        else:
            arguments = [n.annotation for n in ast.walk(node.args) if isinstance(n, ast.arg)]
            fields = [*arguments, node.returns]
        if any(map(is_bare, fields)) and not SAID.search(text):
            yield name


def test_shapes_are_stated():
    found = {
        str(path.relative_to(PACKAGE)): names
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] not in BOOK
        if (names := list(silent(ast.parse(path.read_text(encoding="utf-8")).body)))
    }
    assert not found


def test_a_bare_tensor_is_found():
    source = "def f(x: Tensor): ...\ndef g(x: Float[Tensor, 'B T']) -> dict[str, Tensor]: ...\n"
    source += "class A:\n    x: Tensor | None\ndef h(x: Tensor):\n    '''x: (B, T)'''\n"
    assert list(silent(ast.parse(source).body)) == ["f", "A"]
