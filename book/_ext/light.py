"""Sphinx extension: pages that load little.

When the pages are written, the rules of the themes' styles that no page uses are removed, and so
are the icon fonts and the source maps. The sheets that all pages load become one, and no script
holds up the first paint.
"""

import hashlib
import posixpath
import re
import shutil
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

from sphinx.application import Sphinx

_CLASSES = re.compile(r'\bclass="([^"]*)"')
_NAME = re.compile(r"[A-Za-z_][\w-]*")
_SELECTED = re.compile(r"\.((?:[\w-]|\\.)+)")
_FUNCTION = re.compile(r":(?:not|is|where|has)\([^()]*(?:\([^()]*\)[^()]*)*\)")
_ICONS = re.compile(r"Font ?Awesome|^\.fa[srb]?(?![\w])|^\.fa-|--fa-")
#: Styles and scripts that pages load but do not need.
UNUSED = ("scripts/fontawesome.js", "scripts/fontawesome.js.LICENSE.txt", "vendor/fontawesome")


def rules(style: str) -> Iterator[tuple[str, str]]:
    """Divide a style sheet into (selector, block); a statement such as @import has no block."""
    start = depth = 0
    head = ""
    for match in re.finditer(
        r'/\*.*?\*/|"(?:\\.|[^"])*"|\'(?:\\.|[^\'])*\'|[{};]', style, re.DOTALL
    ):
        token = match[0]
        if token == "{":
            if depth == 0:
                head, start = style[start : match.start()], match.end()
            depth += 1
        elif token == "}":
            depth -= 1
            if depth == 0:
                yield head.strip(), style[start : match.start()]
                start = match.end()
        elif token == ";" and depth == 0:
            yield style[start : match.end()].strip(), ""
            start = match.end()


def used_rules(style: str, names: set[str]) -> str:
    """Return a style sheet without the rules for classes that no page has.

    Args:
        style: the sheet, in CSS.
        names: all classes of the pages, and all words of their scripts.
    """
    kept = []
    for head, block in rules(style):
        plain = re.sub(r"/\*.*?\*/", "", head, flags=re.DOTALL).strip()
        if not block:
            kept += [plain] * plain.endswith(";")  # a statement; else a rule without declarations
        elif plain.startswith(("@media", "@supports", "@layer")):
            inner = used_rules(block, names)
            if inner:
                kept.append(f"{plain}{{{inner}}}")
        elif plain.startswith("@"):
            if not _ICONS.search(block):
                kept.append(f"{plain}{{{block}}}")
        else:
            heads = [each for each in _selectors(plain) if _is_used(each, names)]
            if not all(_ICONS.search(each) for each in heads):
                kept.append(f"{','.join(heads)}{{{block}}}")
    return "\n".join(kept)


def _selectors(head: str) -> list[str]:
    found, depth, start = [], 0, 0
    for i, character in enumerate(head):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            found.append(head[start:i].strip())
            start = i + 1
    return [*found, head[start:].strip()]


def _is_used(selector: str, names: set[str]) -> bool:
    required = _FUNCTION.sub("", selector)
    return all(name.replace("\\", "") in names for name in _SELECTED.findall(required))


# The theme's styles apply only to "light" or "dark", which its script would choose after the first
# paint: line heights and margins would shift.
_LATE = 'localStorage.getItem("theme") || "auto"'
_DARK = 'matchMedia("(prefers-color-scheme: dark)").matches'
_EARLY = f'localStorage.getItem("theme") || ({_DARK} ? "dark" : "light")'


_SHEET = re.compile(
    r'<link(?=[^>]*\brel="stylesheet")[^>]*\bhref="([^"]*?)_static/([^"?]+)[^"]*"[^>]*>\s*'
)
_ADDRESS = re.compile(
    r"""@import\s+(?:url\()?["']([^"']+)["']\)?\s*;|url\((["']?)(?!data:|\#|https?:)([^"')]+)\2\)"""
)
BUNDLE = "book.css"  #: what all pages load


def bundled(static: Path, name: str) -> str:
    """Return a style sheet as if it lay in the folder of static files, with those that it imports.

    Args:
        static: that folder.
        name: path of the sheet within it.
    """

    def moved(found: re.Match[str]) -> str:
        target = posixpath.normpath(f"{posixpath.dirname(name)}/{found[1] or found[3]}".lstrip("/"))
        return bundled(static, target) if found[1] else f'url("{target}")'

    return _ADDRESS.sub(moved, (static / name).read_text(encoding="utf-8"))


def with_bundle(page: str, names: Container[str], bundle: str, version: str) -> str:
    """Return a page that loads one sheet in place of those in it.

    Args:
        page: its markup.
        names: the sheets in the bundle.
        bundle: file name of the bundle.
        version: of the bundle; a browser keeps it until this changes.
    """
    places = [link for link in _SHEET.finditer(page) if link[2] in names]
    for place in reversed(places):
        new = ""
        if place is places[0]:
            new = f'<link rel="stylesheet" href="{place[1]}_static/{bundle}?v={version}">\n'
        page = page[: place.start()] + new + page[place.end() :]
    return page


def with_late_scripts(page: str) -> str:
    """Return a page whose scripts run after it has been read, in their order."""
    page = re.sub(r"<script (?=[^>]*\bsrc=)(?![^>]*\b(?:defer|async)\b)", "<script defer ", page)
    # What uses another script waits for it, as modules do.
    return page.replace(
        "<script>DOCUMENTATION_OPTIONS.", '<script type="module">DOCUMENTATION_OPTIONS.'
    )


def _lighten(app: Sphinx, error: Exception | None) -> None:
    if error or app.builder.name != "html":
        return
    static = Path(app.outdir) / "_static"
    for name in UNUSED:
        path = static / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for path in static.rglob("*.map"):
        path.unlink()
    names: set[str] = set()
    pages = {}
    for path in Path(app.outdir).rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        if static not in path.parents:  # the themes leave templates there
            text = pages[path] = with_late_scripts(text.replace(_LATE, _EARLY))
        names.update(*(found.split() for found in _CLASSES.findall(text)))
        for script in re.findall(r"<script>(.*?)</script>", text, re.DOTALL):
            names.update(_NAME.findall(script))
    for path in static.rglob("*.js"):
        names.update(_NAME.findall(path.read_text(encoding="utf-8")))
    # Extensions add folders of theirs, as absolute paths.
    relative = [folder for folder in app.config.html_static_path if not Path(folder).is_absolute()]
    own = [Path(app.srcdir) / folder for folder in relative]
    for path in static.rglob("*.css"):
        if any((folder / path.relative_to(static)).exists() for folder in own):
            continue
        path.write_text(used_rules(path.read_text(encoding="utf-8"), names), encoding="utf-8")
    loaded = [dict.fromkeys(link[2] for link in _SHEET.finditer(text)) for text in pages.values()]
    loaded = [sheets for sheets in loaded if sheets]  # without those that only lead elsewhere
    shared = [name for name in loaded[0] if all(name in sheets for sheets in loaded)]
    shared_bundle = _write_bundle(static, shared, BUNDLE)
    own_bundles = {}
    for path, text in pages.items():
        text = with_bundle(text, shared, *shared_bundle)
        more = tuple(dict.fromkeys(link[2] for link in _SHEET.finditer(text) if link[2] != BUNDLE))
        if len(more) > 1:
            if more not in own_bundles:
                own_bundles[more] = _write_bundle(static, more, f"book-{len(own_bundles)}.css")
            text = with_bundle(text, more, *own_bundles[more])
        path.write_text(text, encoding="utf-8")


def _write_bundle(static: Path, names: Iterable[str], bundle: str) -> tuple[str, str]:
    """Write style sheets into one; return its file name and its version."""
    style = "\n".join(bundled(static, name) for name in names)
    (static / bundle).write_text(style, encoding="utf-8")
    return bundle, hashlib.sha256(style.encode()).hexdigest()[:8]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("build-finished", _lighten, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
