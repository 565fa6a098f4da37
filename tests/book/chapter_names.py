"""Which names the cells of a chapter bind and read, found without running them."""

import ast
import dis
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType

_NUMBER = re.compile(r"^\*\*(\d+)\. ", re.M)
_READS = {"LOAD_NAME", "LOAD_GLOBAL"}


@dataclass
class Cell:
    """A code cell.

    exercise: the number of its exercise, 0 outside of the exercises.
    kind: "given" (the chapter's, checks included), "open" (the reader's) or "solution".
    binds, reads: names it binds for later cells, and those it reads before it binds them.
    defines: what its functions and classes read when they are called, by name.
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
        steps = list(dis.get_instructions(compile(self.source, self.id, "exec")))
        for place, step in enumerate(steps):
            if step.opname == "STORE_NAME":
                self.binds.add(step.argval)
            elif step.opname in _READS:
                self.reads |= {step.argval} - self.binds
            elif isinstance(step.argval, CodeType):
                name = step.argval.co_name
                if name == "<lambda>":  # read on a call, if it is given a name
                    stored = [
                        s.argval for s in steps[place : place + 4] if s.opname == "STORE_NAME"
                    ]
                    name = stored[0] if stored else name
                if name.startswith("<"):  # a comprehension
                    self.reads |= _free(step.argval) - self.binds
                else:
                    self.defines[name] = _free(step.argval)


def _free(code: CodeType) -> set[str]:
    """What a function, class or comprehension reads from outside of itself."""
    own, read = set(), set()
    for step in dis.get_instructions(code):
        if step.opname == "STORE_NAME":  # in the body of a class
            own.add(step.argval)
        elif step.opname in _READS:
            read |= {step.argval} - own
        elif isinstance(step.argval, CodeType):
            read |= _free(step.argval) - own
    return read


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
            shown = [out.get("text") or out.get("data", {}).get("text/plain", "")
                     for out in cell["outputs"]]  # fmt: skip
            output = "".join(map("".join, shown))
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


def needed(cells: list[Cell]) -> list[Cell]:
    """The cells that the exercises need, in order; solutions are left out."""
    kept, names = [], set()
    fixed = {name for cell in cells for name in imported(cell.source) | {*cell.defines}}
    for index in range(len(cells) - 1, -1, -1):
        cell = cells[index]
        inside = cell.exercise and cell.kind != "solution"
        touched = cell.binds | (changes(cell.source) - fixed)
        if inside or (cell.kind == "given" and touched & names):
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
