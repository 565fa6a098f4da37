"""Sphinx extension: a page loads one style sheet, and no script holds up its first paint.

The themes' rules for what no page has are left out, and those of the icon fonts: icons.css has the
dozen icons that the pages show.
"""

import hashlib
import posixpath
import re
from collections.abc import Callable, Container
from functools import cache
from pathlib import Path

from sphinx.application import Sphinx

_SHEET = re.compile(
    r'<link(?=[^>]*\brel="stylesheet")[^>]*?href="([^"]*?)_static/([^"?]+)[^>]*>\s*'
)
_ADDRESS = re.compile(
    r"""@import\s+(?:url\()?["']([^"']+)["']\)?\s*;|url\((["']?)(?!data:|\#|https?:)([^"')]+)\2\)"""
)
_HAS = re.compile(r'\bclass="([^"]*)"')
_NAME = re.compile(r"[A-Za-z_][\w-]*")
_RULE = re.compile(r"([^{}]+)\{[^{}]*\}")
_CLASS = re.compile(r"\.((?:[A-Za-z_-]|\\.)(?:[\w-]|\\.)*)")
_FUNCTION = re.compile(r":(?:not|is|where|has)\([^()]*(?:\([^()]*\)[^()]*)*\)")
_ICONS = re.compile(
    r"@font-face\s*\{[^{}]*Font Awesome[^{}]*\}"
    r"|(?<=[{};/])\.fa(?:[srb]|-[\w-]+)?(?![\w-])[^{}]*\{[^{}]*\}"
)


def used_rules(style: str, classes: Container[str]) -> str:
    """Return a style sheet without the rules of icon fonts and for classes that no page has."""

    def kept(rule: re.Match[str]) -> str:
        # What is in brackets is another element's, or must not be there.
        for selector in _FUNCTION.sub("", rule[1]).split(","):
            if all(name.replace("\\", "") in classes for name in _CLASS.findall(selector)):
                return rule[0]
        return ""

    plain = re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)
    return _RULE.sub(kept, _ICONS.sub("", plain))


def sheet(static: Path, name: str) -> str:
    """Return a style sheet with those that it imports, as if it lay in the folder above all."""

    def moved(found: re.Match[str]) -> str:
        target = posixpath.normpath(f"{posixpath.dirname(name)}/{found[1] or found[3]}".lstrip("/"))
        return sheet(static, target) if found[1] else f'url("{target}")'

    return _ADDRESS.sub(moved, (static / name).read_text(encoding="utf-8"))


def lightened(page: str, static: Path, sheets: Callable[[str], str]) -> str:
    """Return a page that loads one style sheet, and its scripts last; write the sheet."""
    links = [*_SHEET.finditer(page)]
    if links:
        text = "\n".join(map(sheets, dict.fromkeys(link[2] for link in links)))
        name = f"book-{hashlib.sha256(text.encode()).hexdigest()[:8]}.css"
        (static / name).write_text(text, encoding="utf-8")
        page = page[: links[0].start()] + (
            f'<link rel="stylesheet" href="{links[0][1]}_static/{name}">\n'
            + _SHEET.sub("", page[links[0].start() :])
        )
    page = re.sub(r"<script (?=[^>]*\bsrc=)(?![^>]*\b(?:defer|async)\b)", "<script defer ", page)
    # What uses another script waits for it, as modules do.
    return page.replace(
        "<script>DOCUMENTATION_OPTIONS.", '<script type="module">DOCUMENTATION_OPTIONS.'
    )


def _lighten(app: Sphinx, error: Exception | None) -> None:
    static = Path(app.outdir) / "_static"
    if error or app.builder.name != "html":
        return
    pages = {  # without the templates that the themes leave
        path: path.read_text(encoding="utf-8")
        for path in Path(app.outdir).rglob("*.html")
        if static not in path.parents
    }
    classes = {
        name for page in pages.values() for found in _HAS.findall(page) for name in found.split()
    }
    for path in static.rglob("*.js"):
        classes.update(_NAME.findall(path.read_text(encoding="utf-8")))

    @cache
    def sheets(name: str) -> str:
        text = sheet(static, name)
        is_own = (Path(app.srcdir) / "book/_static" / name).exists()
        return text if is_own else used_rules(text, classes)

    for path, page in pages.items():
        path.write_text(lightened(page, static, sheets), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("build-finished", _lighten, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
