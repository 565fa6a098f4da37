"""What a built book says about its address."""

import public_address
import pytest
from lxml import html
from sphinx.application import Sphinx

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
