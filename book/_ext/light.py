"""Sphinx extension: pages that load little.

When the pages are written, the rules of the themes' styles that no page uses are removed, and so
are the icon fonts and the source maps.
"""

import re
import shutil
from collections.abc import Iterator
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
            kept.append(plain)
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
    for path in Path(app.outdir).rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        if _LATE in text:
            path.write_text(text.replace(_LATE, _EARLY), encoding="utf-8")
        names.update(*(found.split() for found in _CLASSES.findall(text)))
        for script in re.findall(r"<script>(.*?)</script>", text, re.DOTALL):
            names.update(_NAME.findall(script))
    for path in static.rglob("*.js"):
        names.update(_NAME.findall(path.read_text(encoding="utf-8")))
    own = [Path(app.srcdir) / folder for folder in app.config.html_static_path]
    for path in static.rglob("*.css"):
        if any((folder / path.relative_to(static)).exists() for folder in own):
            continue
        path.write_text(used_rules(path.read_text(encoding="utf-8"), names), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("build-finished", _lighten, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
