"""Which names the cells of a chapter bind and read, found without running them."""

import ast
import json
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

_NUMBER = re.compile(r"^\*\*(\d+)\. ", re.M)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass
class Cell:
    """A code cell.

    exercise: the number of the exercise it stands under, 0 outside of the exercises.
    kind: "given" (the chapter's, checks included), "open" (the reader's) or "solution".
    binds, reads: names it binds for later cells, and those it reads and has not bound before.
    defines: what its functions and classes read, by name: they do so when they are called.
    """

    id: str
    source: str
    exercise: int
    kind: str
    output: str = ""
    binds: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)
    defines: dict[str, set[str]] = field(default_factory=dict)

    def __post_init__(self):
        _Names(self).visit_all(ast.parse(self.source).body)


class _Names:
    """Goes through statements in order, so that a name bound above is not read from outside."""

    def __init__(self, cell):
        self.cell = cell

    def visit_all(self, statements):
        for statement in statements:
            if isinstance(statement, _FUNCTIONS):
                self.define(statement)
                continue
            bodies = [getattr(statement, part, []) for part in ("body", "orelse", "finalbody")]
            inner = {id(each) for body in bodies for each in body}
            nodes = list(_walk(statement, inner))
            self.read({node.id for node in nodes if _is(node, ast.Load)})
            lambdas = [node for node in ast.walk(statement) if isinstance(node, ast.Lambda)]
            named = [target.id for target in getattr(statement, "targets", []) if _is(target)]
            bound = {node.id for node in nodes if _is(node, ast.Store)}
            if isinstance(statement, ast.AugAssign) and _is(statement.target):
                self.read({statement.target.id})
            for node in nodes:
                if isinstance(node, ast.Import | ast.ImportFrom):
                    bound |= {(a.asname or a.name).partition(".")[0] for a in node.names}
            if lambdas and named:  # reads when it is called
                for name in named:
                    self.cell.defines[name] = set().union(*(_free(node) for node in lambdas))
            self.cell.binds |= bound
            for body in bodies:
                self.visit_all(body)

    def define(self, node):
        self.read({n.id for d in node.decorator_list for n in ast.walk(d) if _is(n, ast.Load)})
        self.cell.defines[node.name] = _free(node)
        self.cell.binds.add(node.name)

    def read(self, names):
        self.cell.reads |= names - self.cell.binds


def _is(node, context=ast.expr_context):
    return isinstance(node, ast.Name) and isinstance(node.ctx, context)


def _walk(node, without):
    """All nodes of a statement but the bodies inside of it, and the names of comprehensions."""
    if id(node) in without:
        return
    if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.Lambda):
        yield from (ast.Name(name, ast.Load()) for name in _free(node))
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, without)


def _free(node):
    """What a function, class or comprehension reads from outside of itself."""
    own, read = set(), set()
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            (read if isinstance(each.ctx, ast.Load) else own).add(each.id)
        elif isinstance(each, ast.arg):
            own.add(each.arg)
        elif isinstance(each, ast.FunctionDef | ast.ClassDef) and each is not node:
            own.add(each.name)
    return read - own


def is_open(source):
    """Whether a cell has a place for the reader's answer."""
    return any(
        isinstance(node, ast.Return | ast.Assign | ast.Expr)
        and any(isinstance(n, ast.Constant) and n.value is ... for n in _values(node))
        for node in ast.walk(ast.parse(source))
    )


def _values(node):
    value = node.value
    return value.elts if isinstance(value, ast.Tuple) else [value]


def code_cells(path: Path) -> list[Cell]:
    """The code cells of a chapter that run, in order."""
    cells, exercise, inside = [], 0, False
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        tags = cell["metadata"].get("tags", [])
        if cell["cell_type"] == "markdown":
            for heading in re.findall(r"^## (.*)", source, re.M):
                inside = heading == "Exercises"
            numbers = [int(n) for n in _NUMBER.findall(source)]
            exercise = (numbers[-1] if numbers else exercise) if inside else 0
        elif cell["cell_type"] == "code" and "nbval-skip" not in tags:
            kind = "given"
            if exercise:
                kind = "solution" if "solution" in tags else "open" if is_open(source) else "given"
            output = "".join("".join(out.get("text", "")) for out in cell["outputs"])
            cells.append(Cell(cell["id"], source, exercise, kind, output))
    return cells


def reads_when_run(cells: list[Cell], index: int) -> set[str]:
    """What a cell reads from earlier ones, through the functions it calls as well."""
    seen, todo = set(), set(cells[index].reads)
    for inside in cells[index].defines.values():
        # A function may be called in its own cell or by a later one: both count.
        todo |= inside - cells[index].binds | (inside & cells[index].reads)
    while todo:
        name = todo.pop()
        seen.add(name)
        for cell in reversed(cells[:index]):
            if name in cell.binds:
                todo |= cell.defines.get(name, set()) - seen
                break
    return seen


def needed(cells: list[Cell], without: Collection[str] = ()) -> list[Cell]:
    """The cells that the exercises need, in order; solutions and `without` are left out."""
    kept, names = [], set()
    fixed = {name for cell in cells for name in imported(cell.source) | {*cell.defines}}
    for index in range(len(cells) - 1, -1, -1):
        cell = cells[index]
        inside = cell.exercise and cell.kind != "solution" and cell.id not in without
        touched = cell.binds | (changes(cell.source) - fixed)
        if inside or (cell.kind == "given" and cell.id not in without and touched & names):
            kept.append(cell)
            names = names - cell.binds | reads_when_run(cells, index)
    return kept[::-1]


def imported(source: str) -> set[str]:
    """Names that a cell imports."""
    nodes = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Import | ast.ImportFrom)]
    return {alias.asname or alias.name.partition(".")[0] for n in nodes for alias in n.names}


def changes(source: str) -> set[str]:
    """Names of things that a cell may change: ``a.b = 1``, ``a[0] = 1``, ``a.f()``, ``f(a)``."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.Delete):
            found |= {_root(t) for t in getattr(node, "targets", [getattr(node, "target", None)])}
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            if not (isinstance(call.func, ast.Name) and call.func.id in _ONLY_SHOW):
                found |= {_root(call.func), *(_root(each) for each in call.args)}
    return found - {""}


_ONLY_SHOW = {"print", "display", "comparison", "show_source"}


def _root(node: ast.AST | None) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
