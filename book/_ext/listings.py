"""Sphinx extension: listings of the package without docstrings, and lines that fit the page.

A listing of the package's source in a chapter loses its docstrings, which the API pages have, and
is set in 76 columns. A long line of any listing wraps on a narrow screen, with a hanging indent.
"""

import ast
import html
import io
import re
import subprocess
import sys
import textwrap
import tokenize
from functools import cache

from docutils import nodes
from sphinx.application import Sphinx

COLUMNS = 76
#: A line up to this length fits a phone of 390 points.
NARROW = 40

_STRING = re.compile(r'(?<!["\w])(f?)"((?:[^"\\]|\\.)+)"')
_PRE = re.compile(r"(<pre>)(.*?)(</pre>)", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_SCOPES = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def without_docstrings(code: str) -> str:
    """Remove the docstrings of all definitions; one that holds nothing else keeps ``...``."""
    lines: list[str | None] = [*code.splitlines()]
    for scope in ast.walk(ast.parse(code)):
        if not isinstance(scope, _SCOPES) or ast.get_docstring(scope) is None:
            continue
        text = scope.body[0]
        first, last = text.lineno - 1, text.end_lineno or text.lineno
        if last < len(lines) and lines[last] == "":
            last += 1
        lines[first:last] = [None] * (last - first)
        if len(scope.body) == 1:
            lines[first] = " " * text.col_offset + "..."
    return "\n".join(line for line in lines if line is not None)


@cache
def fitted(code: str, columns: int = COLUMNS) -> str:
    """Return Python code in lines of at most some columns.

    Args:
        code: complete statements.
        columns: the longest line.

    Raises:
        subprocess.CalledProcessError: the code has a syntax error.
    """
    code = _comments_fitted(code.rstrip("\n"), columns)
    if max(map(len, code.splitlines()), default=0) <= columns:
        return code
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--quiet"]
    command += ["--line-length", str(columns), "--stdin-filename", "listing.py", "-"]
    run = subprocess.run(command, input=code, text=True, capture_output=True, check=True)
    return _strings_fitted(_comments_fitted(run.stdout.rstrip("\n"), columns), columns)


def _comments_fitted(code: str, columns: int) -> str:
    """Wrap long comments; one at the end of a long line moves above it."""
    lines = code.splitlines()
    long = {i for i, line in enumerate(lines, 1) if len(line) > columns}
    if not long:
        return code
    tokens = list(tokenize.generate_tokens(io.StringIO(code + "\n").readline))
    for token in reversed(tokens):
        row, column = token.start
        if token.type != tokenize.COMMENT or row not in long or token.string.startswith("# fmt"):
            continue
        before = lines[row - 1][:column].rstrip()
        indent = " " * (len(before) - len(before.lstrip()) if before else column)
        start, text = row - 1, token.string.lstrip("# ")
        last = row
        if not before:  # the rest of the same comment is wrapped with it
            rest = f"{indent}# "
            while last < len(lines) and lines[last].startswith(rest) and last + 1 not in long:
                text += " " + lines[last].removeprefix(rest)
                last += 1
        wrapped = textwrap.wrap(
            text, columns, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# "
        )
        lines[start:last] = [*wrapped, *([before] if before else [])]
    return "\n".join(lines)


def _strings_fitted(code: str, columns: int) -> str:
    """Divide strings that reach over the edge, where that leaves the code the same."""
    lines = code.splitlines()
    row = 0
    while row < len(lines):
        halves = _halves(lines[row], columns) if len(lines[row]) > columns else None
        if halves:
            divided = [*lines[:row], *halves, *lines[row + 1 :]]
            if _parsed("\n".join(divided)) == _parsed(code):
                lines = divided
        row += 1
    return "\n".join(lines)


def _parsed(code: str) -> str:
    try:
        return ast.dump(ast.parse(code))
    except SyntaxError:  # the two halves are in no brackets
        return ""


def _halves(line: str, columns: int) -> tuple[str, str] | None:
    for string in _STRING.finditer(line):
        if string.end() <= columns:
            continue
        text, start, depth, cut = string[2], string.start(2), 0, 0
        for i, character in enumerate(text):
            depth += (character == "{") - (character == "}") if string[1] else 0
            if character == " " and depth == 0 and start + i + 2 <= columns:
                cut = i + 1
        if cut:
            prefixes = [string[1] if "{" in half else "" for half in (text[:cut], text[cut:])]
            first = f'{line[: string.start()]}{prefixes[0]}"{text[:cut]}"'
            rest = f'{prefixes[1]}"{text[cut:]}"{line[string.end() :]}'
            return first, " " * string.start() + rest
    return None


def hanging(body: str) -> str:
    """Put each long line of the listings of a page into an element that can wrap."""

    def wrap(line: str) -> str:
        text = html.unescape(_TAG.sub("", line))
        if len(text) <= NARROW or "<div" in line or "</div" in line:
            return line
        indent = len(text) - len(text.lstrip(" "))
        style = f' style="--i:{indent}"' if indent else ""
        return f'<span class="line"{style}>{line}\n</span>'

    def listing(match: re.Match[str]) -> str:
        lines = match[2].split("\n")
        made = [wrap(line) for line in lines]
        # A wrapped line brings its own line break.
        text = "".join(
            line if line.endswith("\n</span>") else line + "\n" * (i + 1 < len(made))
            for i, line in enumerate(made)
        )
        return match[1] + text + match[3]

    return _PRE.sub(listing, body)


def _shorten(app: Sphinx, document: nodes.document) -> None:
    for cell in document.findall(nodes.container):
        if cell.get("nb_element") != "cell_code_output":
            continue
        for block in cell.findall(nodes.literal_block):
            if block.get("language") == "python":
                code = fitted(without_docstrings(block.astext()))
                block.rawsource = code
                block.children = [nodes.Text(code)]


def _on_page(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    if "body" in context:
        context["body"] = hanging(context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("doctree-read", _shorten)
    app.connect("html-page-context", _on_page, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
