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


def add_line(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    """Put the line behind the title of a page, unless it is a page of the API reference."""
    if doctree is None or next(doctree.findall(addnodes.desc), None) is not None:
        return
    times = json.loads((Path(app.srcdir) / "book" / "run_times.json").read_text(encoding="utf-8"))
    minutes = round(words(doctree) / WORDS_A_MINUTE)
    said = [f"{minutes} minute{'s' * (minutes != 1)} to read"] if minutes else []
    if seconds := times.get(page.removeprefix("notebooks/")):
        length = f"{seconds} seconds" if seconds <= 90 else f"{seconds // 60} minutes"
        said.append(f"about {length} to run on one CPU core")
    if said:
        behind = f'</h1>\n<p class="page-times">{", ".join(said)}.</p>'
        context["body"] = context["body"].replace("</h1>", behind, 1)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("html-page-context", add_line)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
