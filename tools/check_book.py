"""Checks the pages of a built book and lists what is wrong with them.

    python tools/check_book.py _build/html

Links to files or anchors that do not exist, anything loaded from another site, pictures without a
description, tracebacks, markup that was not rendered, pages that the table of contents leaves out.
Exits 1 if there is anything to list.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input"}
VOID |= {"link", "meta", "source", "track", "wbr"}
LOADED_BY = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src"}
LOADING_LINKS = {"stylesheet", "icon", "shortcut", "preload", "modulepreload", "apple-touch-icon"}
CODE = {"code", "pre", "script", "style", "textarea", "kbd", "samp"}
UNRENDERED = {
    "role": re.compile(r"\{[a-zA-Z][\w:+-]*\}`"),
    "fence": re.compile(r"^\s*(:{3,}|`{3,})", re.MULTILINE),
    "link": re.compile(r"\]\((#|[\w./-]+\.(md|ipynb)\b)"),
    "formula": re.compile(r"\$\$"),
}
PICTURE_PATH = re.compile(r"\.(png|jpe?g|svg|gif|webp)$", re.IGNORECASE)
SCRIPT_URL = re.compile(r"""["'](?:https?:)?//[^"'\s]+\.(?:js|css)\b""")
CSS_URL = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""")
# Made by Sphinx for the book as a whole: no page of the table of contents.
GENERATED = {"index", "search", "prf-prf"}


class Page(HTMLParser):
    """What the checks need to know of one page."""

    def __init__(self, path: Path):
        super().__init__(convert_charrefs=True)
        self.ids: set[str] = set()
        self.links: list[str] = []  # everything that points somewhere
        self.contents: list[str] = []  # the links of the table of contents
        self.problems: list[str] = []
        self._open: list[tuple[str, set[str]]] = []  # tag and classes of each open element
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        classes = set(values.get("class", "").split())
        self.ids.update(values[name] for name in ("id", "name") if values.get(name))
        if tag not in VOID:
            self._open.append((tag, classes))
        if tag in ("a", "link") and values.get("href"):
            self.links.append(values["href"])
            if tag == "a" and self._inside("bd-links"):
                self.contents.append(values["href"])
        if tag in LOADED_BY and values.get("src"):
            self.links.append(values["src"])
        self._check_loads(tag, values)
        if tag == "img":
            self._check_description(values)
        if classes & {"system-message", "problematic"}:
            self.problems.append("a message of the builder stands on the page")

    def handle_endtag(self, tag: str) -> None:
        for index in range(len(self._open) - 1, -1, -1):
            if self._open[index][0] == tag:
                del self._open[index:]
                return

    def handle_data(self, data: str) -> None:
        tags = {tag for tag, _ in self._open}
        if "script" in tags:
            self.problems += [f"outside load in a script: {u}" for u in SCRIPT_URL.findall(data)]
        elif "style" in tags:
            self.problems += [f"outside load in a style: {u}" for u in CSS_URL.findall(data)]
        if "Traceback (most recent call last)" in data and not self._inside("tag_raises-exception"):
            self.problems.append("a traceback stands on the page")
        if not tags & CODE and not self._inside("math"):
            for kind, pattern in UNRENDERED.items():
                if pattern.search(data):
                    shown = " ".join(data.split())[:60]
                    self.problems.append(f"a {kind} was not rendered: {shown}")

    def _inside(self, css_class: str) -> bool:
        return any(css_class in classes for _, classes in self._open)

    def _check_loads(self, tag: str, values: dict[str, str]) -> None:
        url = values.get(LOADED_BY.get(tag, ""), "")
        if tag == "link" and set(values.get("rel", "").split()) & LOADING_LINKS:
            url = values.get("href", "")
        if is_outside(url):
            self.problems.append(f"<{tag}> loads from another site: {url}")
        self.problems += [f"outside load: {u}" for u in CSS_URL.findall(values.get("style", ""))]

    def _check_description(self, values: dict[str, str]) -> None:
        description = values.get("alt", "").strip()
        name = unquote(Path(urlsplit(values.get("src", "")).path).name) or "an inline picture"
        if not description:
            self.problems.append(f"{name} has no alt text")
        elif PICTURE_PATH.search(description):
            self.problems.append(f"the alt text of {name} is a file name")


def is_outside(url: str) -> bool:
    """Whether a browser would ask another host for this."""
    parts = urlsplit(url)
    return bool(parts.netloc) or parts.scheme in ("http", "https")


def broken_links(path: Path, page: Page, pages: dict[Path, Page]) -> list[str]:
    """Links of one page to files or anchors that are not there."""
    problems = []
    for link in page.links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if target.is_dir():
            target /= "index.html"
        anchor = unquote(parts.fragment)
        if not target.exists():
            problems.append(f"missing file: {link}")
        elif anchor and target in pages and anchor not in pages[target].ids:
            problems.append(f"missing anchor: {link}")
    return problems


def left_out(root: Path, pages: dict[Path, Page]) -> list[str]:
    """Pages that no table of contents links to."""
    listed = {
        (path.parent / unquote(urlsplit(link).path)).resolve() if urlsplit(link).path else path
        for path, page in pages.items()
        for link in page.contents
    }
    return [
        f"{path.relative_to(root)}: not in the table of contents"
        for path in pages
        if path not in listed
        and path.stem not in GENERATED
        and not path.relative_to(root).parts[0].startswith("_")
    ]


def check(root: Path) -> list[str]:
    """Everything that is wrong under `root`, one line each."""
    root = root.resolve()
    if not (root / "index.html").exists():
        return [f"{root / 'index.html'} does not exist: was the book built?"]
    pages = {path: Page(path) for path in sorted(root.rglob("*.html")) if not is_asset(path, root)}
    problems = []
    for path, page in pages.items():
        found = page.problems + broken_links(path, page, pages)
        problems += [f"{path.relative_to(root)}: {problem}" for problem in dict.fromkeys(found)]
    for path in sorted(root.rglob("*.css")):
        for url in CSS_URL.findall(path.read_text(encoding="utf-8")):
            problems.append(f"{path.relative_to(root)}: loads from another site: {url}")
    return problems + left_out(root, pages)


def is_asset(path: Path, root: Path) -> bool:
    """Whether a file is a template that a theme left beside its scripts, and no page."""
    return path.relative_to(root).parts[0] == "_static"


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__.strip().split("\n\n")[1].strip(), file=sys.stderr)
        return 2
    root = Path(sys.argv[1])
    problems = check(root)
    for problem in problems:
        print(problem)
    count = len(list(root.rglob("*.html")))
    print(f"{count} pages checked, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
