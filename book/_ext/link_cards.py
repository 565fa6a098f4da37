"""Sphinx extension: the picture that a link to a page shows elsewhere, and the touch icon.

Each chapter has a card of its own, with its number and title; the other pages share the book's.
The mark on the cards is the logo.
"""

import re
from functools import cache
from html import escape
from pathlib import Path
from urllib.parse import urljoin
from xml.etree import ElementTree

import matplotlib
from navigation import number_of
from PIL import Image, ImageDraw, ImageFont
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from transformer_book.palette import COLOURS, GROUND, INK, SOFT

SIZE = (1200, 630)
ICON_SIZE = 180
ICON = "_static/touch-icon.png"
PROMISE = "From the first dot product to a model that translates"
_CHAPTER = re.compile(r"notebooks/(\d\d_\w+)")
_SHAPE = "{http://www.w3.org/2000/svg}rect"
_FINE = 4  # drawn larger by this factor, then scaled down: smooth edges
_MARGIN, _TEXT_WIDTH, _MARK = 80, 690, 300


@cache
def mark(file: Path, size: int) -> Image.Image:
    """Draw an SVG of squares, such as the logo.

    Args:
        file: the SVG.
        size: height and width of the picture, in pixels.
    """
    root = ElementTree.parse(file).getroot()
    scale = size * _FINE / float(root.attrib["viewBox"].split()[2])
    picture = Image.new("RGBA", (size * _FINE, size * _FINE), GROUND)
    for shape in root.iter(_SHAPE):
        x, y, width, height, radius = (
            scale * float(shape.attrib[name]) for name in ("x", "y", "width", "height", "rx")
        )
        layer = Image.new("RGBA", picture.size)
        box = (x, y, x + width, y + height)
        pen = ImageDraw.Draw(layer)
        if "stroke" in shape.attrib:
            line = round(scale * float(shape.attrib["stroke-width"]))
            pen.rounded_rectangle(box, radius, outline=shape.attrib["stroke"], width=line)
        else:
            opacity = round(255 * float(shape.attrib["fill-opacity"]))
            pen.rounded_rectangle(box, radius, fill=f"{shape.attrib['fill']}{opacity:02x}")
        picture = Image.alpha_composite(picture, layer)
    return picture.convert("RGB").resize((size, size), Image.Resampling.LANCZOS)


def card(logo: Path, book: str, title: str, number: str = "") -> Image.Image:
    """Draw the card of a page.

    Args:
        logo: the SVG of the mark.
        book: name of the book.
        title: of the page.
        number: of the chapter, "" for the card of the book.
    """
    picture = Image.new("RGB", SIZE, GROUND)
    left, bottom = _MARGIN, SIZE[1] - _MARGIN
    picture.paste(mark(logo, _MARK), (SIZE[0] - _MARGIN - _MARK, (SIZE[1] - _MARK) // 2))
    pen = ImageDraw.Draw(picture)
    pen.rectangle((0, 0, SIZE[0], 12), fill=COLOURS["vermilion"])
    above = f"Chapter {number}" if number else "A book with a package"
    pen.text((left, 92), above, COLOURS["vermilion"], _font(34, bold=True), "ls")
    lines, font = _fitted(title)
    height = 1.25 * font.size
    for i, line in enumerate(lines):
        pen.text((left, 170 + i * height), line, INK, font, "lt")
    below = book if number else PROMISE
    pen.text((left, bottom), below, SOFT, _font(30), "ls")
    return picture.quantize(64, dither=Image.Dither.NONE)


def _font(size: int, bold: bool = False) -> ImageFont.FreeTypeFont:
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(f"{matplotlib.get_data_path()}/fonts/ttf/{name}", size)


def _fitted(title: str) -> tuple[list[str], ImageFont.FreeTypeFont]:
    """Break a title into lines, in the largest type with at most four of them."""
    for size in range(60, 20, -4):
        font = _font(size, bold=True)
        lines = [""]
        for word in title.split():
            longer = f"{lines[-1]} {word}".strip()
            if font.getlength(longer) <= _TEXT_WIDTH:
                lines[-1] = longer
            else:
                lines.append(word)
        if len(lines) <= 4 and all(font.getlength(line) <= _TEXT_WIDTH for line in lines):
            break
    return [line for line in lines if line], font


def name_of(page: str) -> str:
    """Return the file of the card of a page, from the folder of the book."""
    chapter = _CHAPTER.fullmatch(page)
    return f"_static/cards/{chapter[1] if chapter else 'book'}.png"


def tags(picture: str, description: str, icon: str) -> str:
    """Write what the head of a page says about its card and the icon.

    Args:
        picture: address of the card.
        description: what it shows, for readers who do not see it.
        icon: address of the touch icon.
    """
    size = f"{ICON_SIZE}x{ICON_SIZE}"
    return (
        f'<meta property="og:image" content="{escape(picture)}">\n'
        f'<meta property="og:image:width" content="{SIZE[0]}">\n'
        f'<meta property="og:image:height" content="{SIZE[1]}">\n'
        f'<meta property="og:image:alt" content="{escape(description)}">\n'
        '<meta name="twitter:card" content="summary_large_image">\n'
        f'<link rel="apple-touch-icon" sizes="{size}" href="{escape(icon)}">\n'
    )


def _titled(env: BuildEnvironment, page: str) -> tuple[str, str]:
    """Return the title and the number on the card of a page."""
    if _CHAPTER.fullmatch(page):
        return env.titles[page].astext(), number_of(env, page)
    return env.config.project, ""


def _on_page(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    if doctree is None:
        return
    title, number = _titled(app.env, page)
    base, relative = app.config.html_baseurl, context["pathto"]
    file = name_of(page)
    picture = urljoin(base, file) if base else relative(file, resource=True)
    description = f"Chapter {number}: {title}" if number else title
    context["metatags"] += tags(picture, description, relative(ICON, resource=True))


def _on_finish(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    source, output = Path(app.srcdir) / "book/_static", Path(app.outdir)
    (output / "_static/cards").mkdir(parents=True, exist_ok=True)
    # One page for each card: the chapters, and any other page for the book's.
    pages = {name_of(page): page for page in app.env.found_docs}
    for file, page in pages.items():
        title, number = _titled(app.env, page)
        picture = card(source / "logo.svg", app.config.project, title, number)
        picture.save(output / file, optimize=True)
    icon = Image.new("RGB", (ICON_SIZE, ICON_SIZE), GROUND)
    icon.paste(mark(source / "favicon.svg", 140), (20, 20))
    icon.quantize(64, dither=Image.Dither.NONE).save(output / ICON, optimize=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("html-page-context", _on_page, priority=600)
    app.connect("build-finished", _on_finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
