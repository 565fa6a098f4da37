"""Sphinx extension: chapter numbers, search, the sidebar, and a page for wrong addresses.

Sphinx itself numbers titles, headings, the sidebar and the figures of a numbered table of contents.
This adds an index entry, so that a search for "chapter 22" finds that chapter first. Parts of the
sidebar without numbers are folded, unless the page is in them. A page 404 offers the search. The
labels of figures stay out of the search index, which every search loads.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.search import languages
from sphinx.search.en import SearchEnglish

_CHAPTER = re.compile(r"notebooks/(\d\d)_")
_PART = re.compile(
    r'<p [^>]*class="caption"[^>]*><span class="caption-text">(.*?)</span></p>\s*'
    r"(<ul\b.*?</ul>)\s*(?=<p |</div|\Z)",
    re.DOTALL,
)

# Decimals, and labels of a figure without blanks between them, such as "050100150step".
_LABELS = re.compile(r"0\d.*|\d.{5,}")

# A missing page has any address, so links of this one start at the book's own.
_BASE, _NOT_FOUND = (
    Path(__file__).with_name(name).read_text(encoding="utf-8").rstrip()
    for name in ("base.html", "not_found.html")
)


class SearchWords(SearchEnglish):
    """The words that can be searched for."""

    def word_filter(self, word: str) -> bool:
        """Return whether a word belongs in the index."""
        return super().word_filter(word) and not _LABELS.fullmatch(word)


def number_of(env: BuildEnvironment, page: str) -> str:
    """Return the number of a page in the table of contents, "" if it has none."""
    numbers = env.toc_secnumbers.get(page, {}).get("")
    return ".".join(map(str, numbers)) if numbers else ""


def _add_entry(app: Sphinx, document: nodes.document) -> None:
    chapter = _CHAPTER.match(app.env.docname)
    if chapter is None:
        return
    section = next(iter(document.findall(nodes.section)))
    # A main entry: the search lists it before pages that only contain the words.
    entry = ("single", f"Chapter {int(chapter[1])}", section["ids"][0], "main", None)
    section.insert(1, addnodes.index(entries=[entry]))


def folded(contents: str) -> str:
    """Fold the parts of the sidebar that have no numbers, except the one that holds the page."""

    def part(match: re.Match[str]) -> str:
        if re.search(r">\d+ ", match[2]):
            return match[0]
        is_open = " open" if re.search(r'class="[^"]*\bcurrent\b', match[2]) else ""
        summary = f'<summary><span class="caption-text">{match[1]}</span></summary>'
        return f'<details class="part"{is_open}>{summary}{match[2]}</details>'

    # The theme's button beside an entry with pages below it has no name.
    named = contents.replace(
        '<summary><span class="toctree-toggle"',
        '<summary aria-label="Pages below"><span class="toctree-toggle"',
    )
    return _PART.sub(part, named)


def _on_page(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    context["root_title"] = "Start here"  # the title of that page is the brand above
    contents = context.get("generate_toctree_html")
    if contents:
        context["generate_toctree_html"] = lambda *args, **options: folded(
            str(contents(*args, **options))
        )


def _pages(app: Sphinx) -> Iterator[tuple[str, dict[str, str], str]]:
    path = urlsplit(app.config.html_baseurl).path or "/"
    base = _BASE.replace("PATH", path if path.endswith("/") else path + "/")
    context = {"title": "Page not found", "body": _NOT_FOUND, "metatags": base}
    yield "404", context, "page.html"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    languages["en"] = SearchWords
    app.connect("doctree-read", _add_entry)
    app.connect("html-page-context", _on_page, priority=900)
    app.connect("html-collect-pages", _pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
