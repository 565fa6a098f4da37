"""Figures and tables of the paper, as the chapters draw them, for the annotated paper."""

import json
import re
from html import escape
from pathlib import Path

from drawn_figures import markup, stored_figures

from transformer_book import picture
from transformer_book.architecture import Architecture

NOTEBOOKS = Path(__file__).parents[3] / "notebooks"

#: What stands in a chapter: its name, the chapter, the cell, and what it shows.
TAKEN: dict[str, list[tuple[str, str, str]]] = {
    "table-1": [],
    "table-2": [],
    "table-3": [],
    "table-4": [],
    "figures-3-to-5": [],
}


def texts() -> dict[str, str]:
    """Return the five figures and four tables by name."""
    figure_1 = Architecture()._repr_mimebundle_()["text/html"]
    found = {
        "figure-1": _framed(
            re.sub(r'href="(?:\.\./)?(?=\d\d_)', 'href="../../notebooks/', figure_1).replace(
                'href="../book/', 'href="../'
            ),
            "Figure 1 of the paper, redrawn. Each box leads to its chapter, each name to its code.",
        ),
        "figure-2-left": _drawn("scaled_dot_product", "Figure 2, left: Eq. (1) as a picture."),
        "figure-2-right": _drawn("multi_head", "Figure 2, right: several heads side by side."),
    }
    return found | {
        name: "\n\n".join(_stored(*part) for part in parts) for name, parts in TAKEN.items()
    }


def _framed(inside: str, caption: str) -> str:
    return (
        f"```{{raw}} html\n<figure>{inside}<figcaption>{caption}</figcaption></figure>\n```"
    )


def _drawn(name: str, caption: str) -> str:
    found = picture(name)
    return _framed(markup(found.wide, found.narrow, found.description), caption)


def _stored(stem: str, cell_id: str, caption: str) -> str:
    """Take what a cell of a chapter shows: a table or a figure."""
    notebook = json.loads((NOTEBOOKS / f"{stem}.ipynb").read_text(encoding="utf-8"))
    [cell] = [each for each in notebook["cells"] if each["id"] == cell_id]
    shown = [markup(wide, narrow, escape(caption)) for wide, narrow in stored_figures(cell)]
    for output in cell["outputs"]:
        shown.append("".join(output.get("data", {}).get("text/html", [])))
    link = f'<a href="../../notebooks/{stem}.html">Chapter {int(stem[:2])}</a>'
    return _framed("".join(shown), f"{caption} {link} has the code and the notes.")
