"""Sphinx extension: fill in the tables that the book draws from records, notebooks and docstrings.

``<!-- filled: NAME -->`` in a page of :data:`PAGES` is replaced by the text of that name, and
``<!-- modules: PACKAGE FIRST ... -->`` by the API entries of a package's modules, the named ones
first.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

from sphinx.application import Sphinx

from generated import (
    api,
    cards,
    claims,
    cover,
    exercises,
    measured,
    paper,
    places,
    program,
    results,
)

ROOT = Path(__file__).resolve().parents[3]


@cache
def _paper() -> dict[str, str]:
    """Make the texts of the annotated paper, which its pages share.

    They are figures and tables, claims, code, and what each alternative costs.
    """
    code = {f"code-{key}": text for key, text in places.code(ROOT).items()}
    found = measured.alternatives() | claims.texts(ROOT) | code
    return found | program.texts(ROOT) | paper.texts()


#: For each page the function that makes its texts by name.
PAGES: Mapping[str, Callable[[], Mapping[str, str]]] = {
    "book/intro": lambda: cover.texts() | {"wall": _paper()["wall"]},
    "book/exercises": partial(exercises.texts, ROOT),
    "book/paper": _paper,
    **{f"book/paper/{stem}": _paper for stem in claims.SECTIONS},
    "book/results": results.texts,
    "book/scale": measured.scale,
    "book/speed": measured.speed,
    "book/use/train": cards.texts,
}
FILLED = re.compile(r"<!-- filled: (\S+) -->")
_MODULES = re.compile(r"<!-- modules: (.+?) -->")


def fill(page: str, text: str) -> str:
    """Fill in the placeholders of a page."""
    if page in PAGES:
        texts = PAGES[page]()
        text = FILLED.sub(lambda found: texts[found[1]], text)
    return _MODULES.sub(lambda found: api.entries(ROOT, *found[1].split()), text)


def _on_read(app: Sphinx, page: str, source: list[str]) -> None:
    source[0] = fill(page, source[0])


def _on_page(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    if page == "book/intro" or page.startswith("book/paper"):
        app.add_css_file("verdicts.css")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", _on_read)
    app.connect("html-page-context", _on_page)
    app.connect("autodoc-process-docstring", api.shorten, priority=100)  # before napoleon
    app.connect("autodoc-process-docstring", api.keep_colons, priority=900)  # after it
    return {"parallel_read_safe": True, "parallel_write_safe": True}
