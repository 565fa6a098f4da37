"""Sphinx extension: scaffolding behind one line that opens it, and no installer on a page.

Cells with the tag hide-input are folded under the name that their metadata give. The switch at the
top of a page opens all of them, but not the checks among the exercises, which give answers away.
"""

import html
import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


class Fold(nodes.General, nodes.Element):
    """Code behind one line that opens it."""


def _visit(self: HTML5Translator, node: Fold) -> None:
    summary = f"<summary>{html.escape(node['label'])}</summary>"
    self.body.append(self.starttag(node, "details", summary, CLASS="fold"))


def _depart(self: HTML5Translator, node: Fold) -> None:
    self.body.append("</details>\n")


def _fold(app: Sphinx, document: nodes.document) -> None:
    exercises = [s for s in document.findall(nodes.section) if "exercises" in s["ids"]]
    kept = {cell for section in exercises for cell in section.findall(nodes.container)}
    for cell in [*document.findall(nodes.container)]:
        if "tag_nbval-skip" in cell["classes"]:  # the installer for Colab
            cell.parent.remove(cell)
        elif cell.get("hide_mode") == "input" and cell not in kept:
            prompt = cell["cell_metadata"].get("mystnb", {}).get("code_prompt_show", "The code")
            label = re.sub(r"^Show (the )?", "", prompt)
            source = cell.children[0]
            source.children = [Fold("", *source.children, label=label[:1].upper() + label[1:])]
            del cell["hide_mode"]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_node(Fold, html=(_visit, _depart))
    app.connect("doctree-read", _fold)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
