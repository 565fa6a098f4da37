"""What a built book says about its address."""

import re
from pathlib import Path

import public_address
import pytest
from docutils import nodes
from docutils.utils import new_document
from lxml import html
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY, PAGES = "https://github.com/owner/name", "https://owner.github.io/name/"
CONFIG = 'extensions = ["sphinxext.opengraph", "public_address"]\nproject = "A book"\n'


@pytest.fixture
def built(tmp_path, monkeypatch):
    """Builds a book of one page."""
    (tmp_path / "conf.py").write_text(CONFIG)
    (tmp_path / "index.rst").write_text("Why divide?\n===========\n\nText.\n")

    def build(repository=None, pages=None):
        monkeypatch.setattr(public_address, "REPOSITORY", repository)
        monkeypatch.setattr(public_address, "PAGES", pages)
        output = tmp_path / "html"
        app = Sphinx(tmp_path, tmp_path, output, tmp_path / "trees", "html", status=None)
        app.build()
        tree = html.parse(str(output / "index.html"))
        tags = {m.get("property"): m.get("content") for m in tree.iter("meta")}
        tags |= {link.get("rel"): link.get("href") for link in tree.iter("link")}
        return output, tags, app.config.html_theme_options

    return build


def test_with_an_address_a_page_has_a_card_and_links_are_whole(built):
    output, tags, options = built(REPOSITORY, PAGES)
    assert tags["og:url"] == tags["canonical"] == f"{PAGES}index.html"
    assert (output / tags["og:image"].removeprefix(PAGES)).stat().st_size > 5_000
    assert options["repository_url"] == REPOSITORY and options["launch_buttons"]["colab_url"]


def test_without_one_no_page_names_another_site_as_its_own(built):
    _, tags, options = built()
    assert not {"og:url", "og:image", "canonical"} & tags.keys()
    assert not options["repository_url"] and not options["launch_buttons"]
    assert not any(value for name, value in options.items() if name.startswith("use_"))


def test_listings_link_to_their_lines(monkeypatch):
    monkeypatch.setattr(public_address, "REPOSITORY", REPOSITORY)
    document = new_document("x")
    place = nodes.literal("", "transformer/model/masks.py, lines 13-24")
    output = nodes.container("", nodes.paragraph("", "", place), nb_element="cell_code_output")
    prose = nodes.paragraph("", "", nodes.literal("", "transformer/model/masks.py, lines 1-2"))
    document += [output, prose]
    public_address._link_to_source(None, document)
    (link,) = document.findall(nodes.reference)
    assert link["refuri"] == f"{REPOSITORY}/blob/main/transformer/model/masks.py#L13-L24"
    assert link.astext() == place.astext()


def test_chapters_store_places_in_the_form_that_is_linked():
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "notebooks").glob("*.ipynb")]
    found = [place for text in texts for place in re.findall(r'"`(.*, lines .*)`\\n"', text)]
    assert found and all(map(public_address._PLACE.fullmatch, found))
