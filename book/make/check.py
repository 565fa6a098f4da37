"""Check the pages of a built book for faults that Sphinx does not report.

Dead links between pages, loads from other sites, pictures without a description, markup that was
not rendered, and code too wide for the page.
"""

import re
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote, urlsplit

import typer
from lxml import html

LOADED = (
    "//script/@src | //img/@src | //iframe/@src | //source/@src | //video/@src | "
    "//link[contains(@rel, 'stylesheet') or contains(@rel, 'icon') or contains(@rel, 'load')]/@href"
)
CODE = ("code", "pre", "script", "style", "textarea", "kbd", "samp")
IS_CODE = " or ".join(f"ancestor::{tag}" for tag in CODE)
PROSE = f"//text()[not({IS_CODE} or ancestor::*[contains(@class, 'math')])]"
UNRENDERED = {
    "role": re.compile(r"\{[a-zA-Z][\w:+-]*\}`"),
    "fence": re.compile(r"^\s*(:{3,}|`{3,})", re.MULTILINE),
    "link": re.compile(r"\]\((#|[\w./-]+\.(md|ipynb)\b)"),
    "formula": re.compile(r"\$\$"),
}
# Without a description of its own, a figure of a notebook gets its path as one.
PICTURE_PATH = re.compile(r"\.(png|jpe?g|svg|gif|webp)$", re.IGNORECASE)
#: Code that is in view; one more column would wrap at 1,280 points.
COLUMNS = 76
LISTINGS = (
    "//div[contains(@class, 'cell_input')]"
    "//div[contains(@class, 'highlight-python')][not(ancestor::details)]//pre"
)


class Page:
    """A parsed page: its anchors, its links, and its faults."""

    def __init__(self, path: Path) -> None:
        self.path = path
        tree = html.document_fromstring(path.read_bytes(), html.HTMLParser(encoding="utf-8"))
        self.anchors = {"", *tree.xpath("//@id | //a/@name")}
        loaded = tree.xpath(LOADED)
        self.links = [*tree.xpath("//a/@href | //link/@href"), *loaded]
        self.faults = [f"loads from another site: {url}" for url in loaded if is_outside(url)]
        for picture in tree.iter("img"):
            alt, name = picture.get("alt", "").strip(), Path(picture.get("src", "")).name[:80]
            if not alt or PICTURE_PATH.search(alt):
                self.faults.append(f"{name or 'a picture'} has no alt text")
        for listing in tree.xpath(LISTINGS):
            wide = [line for line in listing.text_content().splitlines() if len(line) > COLUMNS]
            self.faults += [f"code of {len(line)} columns: {line.strip()}" for line in wide]
        for text in tree.xpath(PROSE):
            for kind, pattern in UNRENDERED.items():
                if pattern.search(text):
                    self.faults.append(f"a {kind} was not rendered: {' '.join(text.split())[:60]}")


def is_outside(url: str) -> bool:
    """Return whether a browser would ask another host for it."""
    parts = urlsplit(url)
    return bool(parts.netloc) or parts.scheme in ("http", "https")


def dead_links(page: Page, pages: dict[Path, Page]) -> list[str]:
    """Return the links of a page to files or anchors that do not exist."""
    dead = []
    for link in page.links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
        if target.is_dir():
            target /= "index.html"
        if not target.exists():
            dead.append(f"missing file: {link}")
        elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
            dead.append(f"missing anchor: {link}")
    return dead


def faults(root: Path) -> list[str]:
    """Return everything that is wrong with the book in a folder, one line per fault."""
    root = root.resolve()
    if not (root / "index.html").exists():
        return [f"{root / 'index.html'} does not exist: was the book built?"]
    # The themes leave templates in _static, which are no pages.
    paths = [p for p in sorted(root.rglob("*.html")) if p.relative_to(root).parts[0] != "_static"]
    pages = {path: Page(path) for path in paths}
    found = []
    for path, page in pages.items():
        every = dict.fromkeys(page.faults + dead_links(page, pages))
        found += [f"{path.relative_to(root)}: {fault}" for fault in every]
    return found


def check(root: Annotated[Path, typer.Argument(help="folder of the built book")]) -> None:
    """List what is wrong with the pages of a built book; exit with 1 if anything is."""
    found = faults(root)
    print(*found, f"{len(found)} faults in {root}", sep="\n")
    raise typer.Exit(1 if found else 0)
