"""Sphinx extension: put the figures of notebooks into the page, in its colours.

A stored figure is SVG whose colours are variables. Inside the page, and only there, they follow its
theme. Chapters 1 to 11 begin with the place of their subject in Figure 1 of the paper.
"""

import json
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from transformer_book.architecture import PLACES, you_are_here
from transformer_book.palette import css_variables

PRIORITY = 300  # before Sphinx collects pictures as files


def palette_style() -> str:
    """Write the palette's variables for a light and for a dark page; paper is light."""
    light, dark = css_variables()
    return f"<style>html{{{light}}}@media screen{{html[data-theme=dark]{{{dark}}}}}</style>"


def stored_figures(cell: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the SVG outputs of a cell, each with its variant for phones, or ""."""
    found = []
    for output in cell.get("outputs", []):
        if svg := output.get("data", {}).get("image/svg+xml"):
            narrow = output.get("metadata", {}).get("image/svg+xml", {}).get("narrow", "")
            found.append(("".join(svg), narrow))
    return found


def markup(wide: str, narrow: str, alt: str) -> str:
    """Write a figure for the page; of two variants, the width of the page selects one."""
    label = f'<svg role="img" aria-label="{escape(alt)}" '
    both = [(wide, "wide"), (narrow, "narrow")] if narrow else [(wide, "any")]
    drawn = (svg.replace("<svg ", f'{label}data-width="{name}" ', 1) for svg, name in both)
    return f'<div class="drawn">{"".join(drawn)}</div>'


def _on_document(app: Sphinx, document: nodes.document) -> None:
    path = Path(app.env.doc2path(app.env.docname))
    if path.suffix != ".ipynb":
        return
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for container in document.findall(nodes.container):
        if container.get("nb_element") != "cell_code":
            continue
        pictures = [i for i in container.findall(nodes.image) if i["uri"].endswith(".svg")]
        stored = stored_figures(cells[container["cell_index"]])
        for picture, (wide, narrow) in zip(pictures, stored, strict=True):
            shown = nodes.raw("", markup(wide, narrow, picture.get("alt", "")), format="html")
            picture.parent.replace(picture, shown)
    if place := PLACES.get(path.stem[:2]):
        section = next(iter(document.findall(nodes.section)))
        svg = markup(you_are_here(path.stem[:2]), "", f"Figure 1 of the paper; marked: {place}")
        text = (
            f'<figure class="here">{svg}<figcaption>You are here: {escape(place)}</figcaption>'
            "</figure>"
        )
        section.insert(1, nodes.raw("", text, format="html"))


def _on_page(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    context["metatags"] = context.get("metatags", "") + palette_style()


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("doctree-read", _on_document, priority=PRIORITY)
    app.connect("html-page-context", _on_page)
    app.add_css_file("figures.css")
    app.add_js_file("figures.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
