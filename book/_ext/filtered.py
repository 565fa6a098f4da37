"""Sphinx extension: tables whose rows can be chosen by chapter, by corpus, and the like.

Each row of the tables on these pages gets its values as attributes, and the page a form with a menu
for each, where it has :data:`PLACE`. filters.js shows the rows that fit; without scripts all of
them are shown.
"""

import re
from collections.abc import Callable, Mapping
from html import escape

from navigation import number_of
from sphinx.application import Sphinx
from tables import CELL, HEAD, ROW, TABLE, text_of

#: The values of a row, from its cells by the names of their columns, and from the heading above.
Reader = Callable[[Mapping[str, str], str], list[str]]

PLACE = '<div class="row-filters"></div>'
# A page without contents at the right leaves their room to its table.
_WIDE = "<style>.bd-main .bd-content div.bd-article-container{max-width:none}</style>"
_HEADING = re.compile(r"<h2>(.*?)<a ", re.DOTALL)
_CORPORA = {
    "Multi30K": r"multi30k",
    "Tatoeba": r"tatoeba",
    "IWSLT14": r"iwslt14",
    "WMT": r"newstest|wmt|BLEU, English|Moses",
}


def _column(name: str) -> Reader:
    return lambda cells, heading: [cells[name]]


def _chapter(cells: Mapping[str, str], heading: str) -> list[str]:
    return [cells["Exercise"].partition(".")[0]]


def _corpora(cells: Mapping[str, str], heading: str) -> list[str]:
    about = " ".join([heading, *cells, cells.get("corpus (from)", "")])
    found = [name for name, sign in _CORPORA.items() if re.search(sign, about, re.IGNORECASE)]
    return found or ["others"]


def _origin(cells: Mapping[str, str], heading: str) -> list[str]:
    if "preset" in cells:
        return ["not run yet"]
    ours = cells.get("from") == "ours" or {"recipe", "run", "signature", "ours"} & cells.keys()
    return ["measured here" if ours else "published"]


#: For each page what a row is, and the ways to choose rows.
PAGES: Mapping[str, tuple[str, Mapping[str, Reader]]] = {
    "book/exercises": (
        "exercises",
        {"chapter": _chapter, "level": _column("Level"), "answer": _column("You give")},
    ),
    "book/results": ("rows", {"corpus": _corpora, "origin": _origin}),
}


def filtered(body: str, page: str, titles: Mapping[str, str]) -> str:
    """Return a page's markup with its filters, and with the values of each row."""
    noun, readers = PAGES[page]
    values: dict[str, dict[str, None]] = {name: {} for name in readers}
    headings = [(match.start(), text_of(match[1])) for match in _HEADING.finditer(body)]

    def table(match: re.Match[str]) -> str:
        head = HEAD.search(match[2])
        if head is None:
            return match[0]
        names = [text_of(cell[2]) for cell in CELL.findall(head[0])]
        heading = next((text for at, text in reversed(headings) if at < match.start()), "")
        rows = []
        for row in ROW.findall(match[2][head.end() :]):
            cells = [text_of(cell[2]) for cell in CELL.findall(row)]
            marks = ""
            for name, read in readers.items():
                own = dict.fromkeys(
                    filter(None, read(dict(zip(names, cells, strict=True)), heading))
                )
                values[name] |= own
                marks += f' data-{name}="{escape("|".join(own))}"'
            rows.append(row.replace("<tr", f"<tr{marks}", 1))
        attributes = match[1].replace('class="', 'class="filtered ', 1)
        inside = f"{match[2][: head.end()]}\n<tbody>{''.join(rows)}</tbody>"
        return f"<table{attributes}>{inside}</table>"

    made = TABLE.sub(table, body)
    return made.replace(PLACE, _form(noun, values, titles))


def _form(noun: str, values: Mapping[str, Mapping[str, None]], titles: Mapping[str, str]) -> str:
    menus = []
    for name, found in values.items():
        chosen = sorted(found, key=int) if all(map(str.isdigit, found)) else list(found)
        options = "".join(
            f'<option value="{escape(value)}">{escape(titles.get(value, value))}</option>'
            for value in chosen
        )
        menus.append(
            f'<label>{name} <select name="{name}"><option value="">all</option>{options}</select>'
            "</label> "
        )
    return (
        f'<form class="row-filters pst-js-only" aria-label="Choose {noun}" data-noun="{noun}">'
        f'{"".join(menus)}<button type="reset">Show all</button>'
        '<output aria-live="polite"></output></form>'
    )


def _on_page(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    if page in PAGES and "body" in context:
        names = {number_of(app.env, name): title for name, title in app.env.titles.items()}
        titles = {number: f"{number} {title.astext()}" for number, title in names.items()}
        context["body"] = filtered(context["body"], page, titles)
        if "<h2>" not in context["body"]:
            context["metatags"] = context.get("metatags", "") + _WIDE
        app.add_css_file("filters.css")
        app.add_js_file("filters.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("html-page-context", _on_page, priority=800)  # after the cells have their labels
    return {"parallel_read_safe": True, "parallel_write_safe": True}
