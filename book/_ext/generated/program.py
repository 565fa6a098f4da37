"""The program of the book in the annotated paper: each definition beside the section that it is."""

import ast
from pathlib import Path

PROGRAM = Path("transformer", "minimal.py")


def texts(root: Path) -> dict[str, str]:
    """Return the definitions as blocks of code, by names such as "program-attention"."""
    source = (root / PROGRAM).read_text(encoding="utf-8")
    lines = source.splitlines()
    return {
        f"program-{node.name}": _block(lines, node)
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }


def _block(lines: list[str], node: ast.FunctionDef | ast.ClassDef) -> str:
    first = min(each.lineno for each in (node, *node.decorator_list))
    caption = f":caption: {PROGRAM.as_posix()}, lines {first} to {node.end_lineno}"
    code = "\n".join(lines[first - 1 : node.end_lineno])
    return f"```{{code-block}} python\n{caption}\n\n{code}\n```"
