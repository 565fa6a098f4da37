"""Sphinx extension: fold what is scaffolding in a chapter's code, and keep the idea in view.

Imports, checks, tables and figures are recognised statement by statement. Each run of them becomes
one line that opens the code, such as "6 statements checked". The switch at the top of a page opens
all of them. The section of exercises is left as it is.
"""

import ast
import html
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import TypeGuard

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

#: What the line says, by kind. The number of checks comes before theirs.
LABELS = {
    "imports": "Imports",
    "checks": "checked",
    "table": "How the table is made",
    "figure": "How the figure is drawn",
    "listing": "The call that shows this listing",
}
_SETTINGS = {"setup"}
_TABLES = {"Table", "comparison"}
_CANVASES = {"figure"}


@dataclass
class Part:
    """A run of lines of a cell.

    Args:
        kind: a key of :data:`LABELS`, or "" for code that stays in view.
        code: the lines.
        label: what the folded line says.
    """

    kind: str
    code: str
    label: str = ""


def parts_of(source: str, figure: bool = False, later: Set[str] | None = None) -> list[Part]:
    """Divide a cell into what stays in view and what is folded.

    Args:
        source: of the cell.
        figure: whether its output is a numbered figure.
        later: names that later cells read; a value that nothing but checks read is folded with
            them. Without it every value stays in view.

    Returns:
        The parts in order. A cell that is not plain Python is one part.
    """
    try:
        statements = ast.parse(source).body
    except SyntaxError:
        return [Part("", source)]
    lines = source.splitlines()
    kinds = _kinds(statements, figure)
    if later is not None:
        _fold_values(statements, kinds, later)
    parts: list[Part] = []
    checks: list[int] = []
    start = 0
    for statement, kind in zip(statements, kinds, strict=True):
        end = statement.end_lineno or statement.lineno
        if statement.lineno <= start:  # a second statement on one line
            kind = parts[-1].kind
        code = "\n".join(lines[start:end])
        if parts and parts[-1].kind == kind:
            parts[-1].code += "\n" * (end > start) + code
            checks[-1] += _checks_in(statement)
        elif code:
            parts.append(Part(kind, code))
            checks.append(_checks_in(statement))
        start = max(start, end)
    if parts and lines[start:]:
        parts[-1].code += "\n" + "\n".join(lines[start:])
    for part, number in zip(parts, checks, strict=True):
        part.code = part.code.strip("\n")
        part.label = LABELS.get(part.kind, "")
        if part.kind == "checks":
            part.label = f"{number} statement{'s' * (number != 1)} {part.label}"
    return parts or [Part("", source)]


def _kinds(statements: Sequence[ast.stmt], figure: bool) -> list[str]:
    kinds = [_kind(statement) for statement in statements]
    drawn = [i for i, each in enumerate(statements) if _CANVASES & _called(each)]
    if figure and statements:
        is_function = isinstance(statements[drawn[0]], ast.FunctionDef) if drawn else False
        first = drawn[0] if drawn and not is_function else len(statements) - 1
        kinds[first:] = ["figure"] * (len(kinds) - first)
    # The rows of a table are made for it if they only put into form what is there already.
    for i in reversed(range(len(kinds) - 1)):
        behind = next((kind for kind in kinds[i + 1 :] if kind != "checks"), "")
        if kinds[i] == "" and behind == "table" and _formats_rows(statements[i]):
            kinds[i] = "table"
    return kinds


def _fold_values(statements: Sequence[ast.stmt], kinds: list[str], later: Set[str]) -> None:
    """Fold the values that only the checks behind them read."""
    read = set(later)
    for i in reversed(range(len(kinds))):
        statement, follows = statements[i], kinds[i + 1 : i + 2]
        if kinds[i] == "" and follows == ["checks"] and isinstance(statement, ast.Assign):
            targets = {n.id for t in statement.targets for n in ast.walk(t) if _is_stored(n)}
            if targets and not targets & read:
                kinds[i] = "checks"
        if kinds[i] != "checks":
            read |= names_read(statement)


def _is_stored(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def names_read(tree: ast.AST) -> set[str]:
    """Return the names that some code reads."""
    return {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    } | {
        node.target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
    }


def read_later(sources: Sequence[str]) -> list[set[str]]:
    """Return for each cell the names that the cells after it read, other than in their checks."""
    found: list[set[str]] = []
    names: set[str] = set()
    for source in reversed(sources):
        found.insert(0, set(names))
        try:
            statements = ast.parse(source).body
        except SyntaxError:
            continue
        for statement in statements:
            if not _only_checks(statement):
                names |= names_read(statement)
    return found


def _kind(statement: ast.stmt) -> str:
    if isinstance(statement, ast.Import | ast.ImportFrom) or _calls(statement) in _SETTINGS:
        return "imports"
    if _calls(statement) in _TABLES:
        return "table"
    if _calls(statement) == "show_source":
        return "listing"
    if _only_checks(statement):
        return "checks"
    return ""


def _only_checks(statement: ast.stmt) -> bool:
    """Return whether a statement is a check, or a loop or a block that holds nothing else."""
    if isinstance(statement, ast.Assert):
        return True
    if isinstance(statement, ast.For | ast.With | ast.If):
        return all(map(_only_checks, [*statement.body, *getattr(statement, "orelse", [])]))
    return _calls(statement).startswith("assert_")


def _checks_in(statement: ast.stmt) -> int:
    return sum(
        isinstance(node, ast.Assert)
        or (isinstance(node, ast.Call) and _name(node.func).startswith("assert_"))
        for node in ast.walk(statement)
    )


def _formats_rows(statement: ast.stmt) -> bool:
    """Return whether a statement makes ``rows`` from values that have been computed before."""
    if isinstance(statement, ast.For):
        return all(map(_formats_rows, statement.body))
    if isinstance(statement, ast.If):
        return all(map(_formats_rows, [*statement.body, *statement.orelse]))
    if isinstance(statement, ast.Assign):
        return [_name(target) for target in statement.targets] == ["rows"]
    return _calls(statement) == "append"


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _calls(statement: ast.stmt) -> str:
    """Return the name of the function if the statement is a call of one, else ""."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return _name(statement.value.func)
    return ""


def _called(statement: ast.stmt) -> set[str]:
    return {_name(node.func) for node in ast.walk(statement) if isinstance(node, ast.Call)}


class Fold(nodes.General, nodes.Element):
    """Code behind one line that opens it."""


def _visit(self: HTML5Translator, node: Fold) -> None:
    summary = f"<summary>{html.escape(node['label'])}</summary>"
    self.body.append(self.starttag(node, "details", summary))


def _depart(self: HTML5Translator, node: Fold) -> None:
    self.body.append("</details>\n")


def _in_exercises(node: nodes.Node) -> bool:
    while node.parent is not None:
        node = node.parent
        if isinstance(node, nodes.section) and "exercises" in node["ids"]:
            return True
    return False


def _fold(app: Sphinx, document: nodes.document) -> None:
    cells = [
        cell
        for cell in document.findall(nodes.container)
        if cell.get("nb_element") == "cell_code" and cell.children
    ]
    later = read_later([cell.children[0].astext() for cell in cells])
    for cell, names in zip(cells, later, strict=True):
        if "tag_nbval-skip" in cell["classes"]:  # the installer for Colab
            cell.parent.remove(cell)
        elif not _in_exercises(cell):
            _fold_cell(cell, names)
            _join_imports(cell)


def _fold_cell(cell: nodes.container, later: Set[str]) -> None:
    box = cell.children[0]
    if box.get("nb_element") != "cell_code_source":
        return
    (block,) = box.children
    source = block.astext()
    metadata = cell["cell_metadata"].get("mystnb", {})
    if cell.get("hide_mode") == "input":  # by tag: the whole cell, under the name it gives
        label = re.sub(r"^Show (the )?", "", metadata.get("code_prompt_show", "Show the code"))
        kind = "table" if "table" in label else "figure"
        parts = [Part(kind, source, label[:1].upper() + label[1:])]
        del cell["hide_mode"]
    elif cell.get("hide_mode"):
        return
    else:
        parts = parts_of(source, "figure" in metadata, later)
    made: list[nodes.Node] = []
    for part in parts:
        listing = block.deepcopy()
        listing.rawsource = part.code
        listing.children = []
        listing += nodes.Text(part.code)
        fold = Fold("", listing, label=part.label, classes=["fold", f"fold-{part.kind}"])
        made.append(fold if part.kind else listing)
    box.children = []
    box.extend(made)
    if not any(part.kind == "" for part in parts):
        box["classes"].append("all-folded")


def _only_imports(cell: nodes.Node | None) -> Fold | None:
    """Return the fold of a cell that holds nothing but imports, else None."""
    if not isinstance(cell, nodes.container) or len(cell.children) != 1:
        return None
    folds = cell.children[0].children
    if len(folds) == 1 and isinstance(folds[0], Fold) and "fold-imports" in folds[0]["classes"]:
        return folds[0]
    return None


def _join_imports(cell: nodes.container) -> None:
    """Move a cell of imports into the fold of the cell above if that has only imports too."""
    siblings = cell.parent.children
    place = siblings.index(cell)
    above = _only_imports(siblings[place - 1]) if place else None
    own = _only_imports(cell)
    if above is not None and own is not None:
        above.extend(own.children)
        cell.parent.remove(cell)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_node(Fold, html=(_visit, _depart))
    app.connect("doctree-read", _fold)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
