"""Sphinx extension: a page loads one style sheet, and no script holds up its first paint.

The rules of the icon fonts are left out: icons.css has the dozen icons that the pages show.
"""

import hashlib
import posixpath
import re
from functools import cache
from pathlib import Path

from sphinx.application import Sphinx

_SHEET = re.compile(
    r'<link(?=[^>]*\brel="stylesheet")[^>]*?href="([^"]*?)_static/([^"?]+)[^>]*>\s*'
)
_ADDRESS = re.compile(
    r"""@import\s+(?:url\()?["']([^"']+)["']\)?\s*;|url\((["']?)(?!data:|\#|https?:)([^"')]+)\2\)"""
)
_ICONS = re.compile(
    r"@font-face\s*\{[^{}]*Font Awesome[^{}]*\}"
    r"|(?<=[{};/])\.fa(?:[srb]|-[\w-]+)?(?![\w-])[^{}]*\{[^{}]*\}"
)


@cache
def sheet(static: Path, name: str) -> str:
    """Return a style sheet with those that it imports, as if it lay in the folder above all."""

    def moved(found: re.Match[str]) -> str:
        target = posixpath.normpath(f"{posixpath.dirname(name)}/{found[1] or found[3]}".lstrip("/"))
        return sheet(static, target) if found[1] else f'url("{target}")'

    text = (static / name).read_text(encoding="utf-8")
    return _ADDRESS.sub(moved, _ICONS.sub("", text))


def lightened(page: str, static: Path) -> str:
    """Return a page that loads one style sheet, and its scripts last; write the sheet."""
    links = [*_SHEET.finditer(page)]
    if links:
        text = "\n".join(sheet(static, name) for name in dict.fromkeys(link[2] for link in links))
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
    for path in Path(app.outdir).rglob("*.html"):
        if static not in path.parents:  # the themes leave templates there
            text = path.read_text(encoding="utf-8")
            path.write_text(lightened(text, static), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("build-finished", _lighten, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
