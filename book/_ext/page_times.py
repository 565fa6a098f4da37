"""Sphinx extension: a line under each title that says how long the page takes.

Reading time is computed from the words of the page. The run time of a chapter is in run_times.json,
which is written when the notebooks are executed; a page without an entry has none.
"""

import json
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

WORDS_A_MINUTE = 200
# Folded cells are skipped by most readers, and outputs are looked at more than read.
UNREAD = ("tag_hide", "cell_output", "sd-dropdown", "fold")


def words(node: nodes.Node) -> float:
    """Count the words to read below a node; a word of code counts half."""
    if isinstance(node, nodes.Text):
        return len(node.split())
    if isinstance(node, (nodes.raw, nodes.comment, nodes.image)):
        return 0
    if isinstance(node, nodes.literal_block):
        return len(node.astext().split()) / 2
    classes = node.get("classes", []) if isinstance(node, nodes.Element) else []
    if any(name.startswith(UNREAD) for name in classes):
        return 0
    return sum(words(child) for child in node.children)


def duration(seconds: float) -> str:
    """Write a length of time in words: "half a minute", "2 minutes"."""
    if seconds < 60:
        return "half a minute" if seconds == 30 else f"{seconds} seconds"
    minutes = seconds / 60
    if minutes == 1.5:
        return "a minute and a half"
    return "a minute" if minutes == 1 else f"{minutes:.0f} minutes"


def line(count: float, seconds: float | None) -> str:
    """Write the line under the title; empty for a page of a few words."""
    minutes = round(count / WORDS_A_MINUTE)
    said = []
    if minutes:
        said.append(f"{duration(60 * minutes).capitalize()} to read")
    if seconds is not None:
        said.append(f"about {duration(seconds)} to run on one CPU core")
    return ", ".join(said)


def add_line(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    """Put the line behind the title of a page, unless it is a page of the API reference."""
    if doctree is None or next(doctree.findall(addnodes.desc), None) is not None:
        return
    times = json.loads((Path(app.srcdir) / "book" / "run_times.json").read_text(encoding="utf-8"))
    said = line(words(doctree), times.get(page.removeprefix("notebooks/")))
    if said:
        behind = f'</h1>\n<p class="page-times">{said}.</p>'
        context["body"] = context["body"].replace("</h1>", behind, 1)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("html-page-context", add_line)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
