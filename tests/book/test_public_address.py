"""What a built book says about its address, and the cards of its pages."""

import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import public_address
import pytest
from docutils import nodes
from docutils.utils import new_document
from link_cards import ICON_SIZE, SIZE, card
from lxml import html
from PIL import Image, ImageChops
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
LOGO = ROOT / "book/_static/logo.svg"
REPOSITORY, PAGES = "https://github.com/owner/name", "https://owner.github.io/name/"
CHAPTER = "notebooks/04_scaling"
START = f"Start\n=====\n\n.. toctree::\n   :numbered:\n\n   {CHAPTER}\n"
CONFIG = """
extensions = ["sphinxext.opengraph", "public_address", "link_cards"]
project = "A book"
ogp_social_cards = {"enable": False}
"""


@pytest.fixture
def built(tmp_path, monkeypatch):
    """Builds a book of two pages."""
    source, output = tmp_path / "source", tmp_path / "html"
    (source / "notebooks").mkdir(parents=True)
    (source / "book/_static").mkdir(parents=True)
    for name in ("logo.svg", "favicon.svg"):
        shutil.copy(LOGO.with_name(name), source / "book/_static")
    (source / "conf.py").write_text(CONFIG)
    (source / "index.rst").write_text(
        "Start\n=====\n\n.. toctree::\n   :numbered:\n\n   " + CHAPTER
    )
    (source / f"{CHAPTER}.rst").write_text("Why divide?\n===========\n\nText.\n")

    def build(repository=None, pages=None):
        monkeypatch.setattr(public_address, "REPOSITORY", repository)
        monkeypatch.setattr(public_address, "PAGES", pages)
        app = Sphinx(source, source, output, tmp_path / "trees", "html", status=None, freshenv=True)
        app.build()
        return output, app.config

    return build


def head(output, page):
    """The tags of a page: content by property or name."""
    tree = html.parse(str(output / f"{page}.html"))
    tags = {m.get("property") or m.get("name"): m.get("content") for m in tree.iter("meta")}
    return tags, {link.get("rel"): link.get("href") for link in tree.iter("link")}


def test_with_an_address_tags_are_absolute_and_there_is_a_sitemap(built):
    output, config = built(REPOSITORY, PAGES)
    tags, links = head(output, CHAPTER)
    assert tags["og:url"] == links["canonical"] == f"{PAGES}{CHAPTER}.html"
    assert tags["og:image"] == f"{PAGES}_static/cards/04_scaling.png"
    places = ElementTree.parse(output / "sitemap.xml").getroot().iter()
    found = {place.text for place in places if place.tag.endswith("}loc")}
    assert found == {f"{PAGES}index.html", f"{PAGES}{CHAPTER}.html"}
    assert config.html_theme_options["repository_url"] == REPOSITORY
    assert config.html_theme_options["launch_buttons"]["colab_url"]


def test_without_one_no_page_names_another_site_as_its_own(built):
    output, config = built()
    tags, links = head(output, CHAPTER)
    assert "og:url" not in tags and "canonical" not in links
    assert not (output / "sitemap.xml").exists()
    options = config.html_theme_options
    assert not options["repository_url"] and not options["launch_buttons"]
    assert not any(value for name, value in options.items() if name.startswith("use_"))


def test_every_page_has_a_card_and_the_icon(built):
    output, _ = built()
    pages = {"index": "A book", CHAPTER: "Chapter 1: Why divide?"}
    for page, description in pages.items():
        tags, links = head(output, page)
        assert tags["twitter:card"] == "summary_large_image"
        assert tags["og:image:alt"] == description
        file = (output / page).parent / tags["og:image"]
        with Image.open(file) as picture:
            assert picture.size == SIZE == (1200, 630)
            assert (str(SIZE[0]), str(SIZE[1])) == (
                tags["og:image:width"],
                tags["og:image:height"],
            )
        assert file.stat().st_size < 40_000
        with Image.open((output / page).parent / links["apple-touch-icon"]) as icon:
            assert icon.size == (ICON_SIZE, ICON_SIZE) == (180, 180)


def test_a_card_shows_title_number_book_and_mark():
    def shown(*arguments):
        return card(LOGO, *arguments).convert("RGB")

    picture = shown("Book", "Why?", "4")
    for other in (("Book", "What?", "4"), ("Book", "Why?", "5"), ("Other", "Why?", "4")):
        assert ImageChops.difference(picture, shown(*other)).getbbox()
    inside = [(r, g, b) for _, (r, g, b) in picture.crop((800, 0, *SIZE)).getcolors(10_000)]
    assert any(r > 200 and 100 < g < 140 and b < 60 for r, g, b in inside)


def test_a_long_title_stays_left_of_the_mark():
    title = "What does a long sequence cost, and what helps, and what else is there to say of it?"
    picture = card(LOGO, "Book", title, "22").convert("L").crop((0, 20, *SIZE))
    ink = picture.point(lambda value: 255 * (value < 120))
    left, _, right, bottom = ink.crop((0, 0, 810, SIZE[1])).getbbox()
    assert left >= 80 and right < 780 and bottom < SIZE[1] - 60


def test_listings_link_to_their_lines():
    document = new_document("x")
    output = nodes.container(nb_element="cell_code_output")
    place = nodes.literal("", "transformer/model/masks.py, lines 13-24")
    output += nodes.paragraph("", "", place)
    prose = nodes.paragraph("", "", nodes.literal("", "transformer/model/masks.py, lines 1-2"))
    document += [output, prose]
    public_address.link_to_source(document, REPOSITORY)
    (link,) = document.findall(nodes.reference)
    assert link["refuri"] == f"{REPOSITORY}/blob/main/transformer/model/masks.py#L13-L24"
    assert link.astext() == place.astext()


def test_chapters_store_places_in_the_form_that_is_linked():
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        text = path.read_text(encoding="utf-8")
        for place in re.findall(r'"`(transformer/[^`]*)`\\n"', text):
            assert public_address._PLACE.fullmatch(place)
        assert "/blob/" not in text
