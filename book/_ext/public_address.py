"""Sphinx extension: what depends on the public address, :mod:`transformer.published`.

With an address, pages link to the repository and to Colab, listings to their lines on GitHub, and a
link to a page shows a card. Without one, a built book has no link that leads to either.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

from transformer.published import PAGES, REPOSITORY

BRANCH = "main"
COLAB = "https://colab.research.google.com"
_PLACE = re.compile(r"((?:book/)?transformer\w*/[\w/]+\.py), lines (\d+)-(\d+)")
_OWN_ADDRESS = re.compile(r'<meta property="og:url"[^>]*>\n?')


def _configure(app: Sphinx, config: Config) -> None:
    config.html_baseurl = config.ogp_site_url = PAGES or ""
    if PAGES is None:  # the address of a picture has to be a whole one
        config.ogp_social_cards = {"enable": False}
    buttons = ("repository", "issues", "edit_page")
    config.html_theme_options |= {f"use_{name}_button": bool(REPOSITORY) for name in buttons} | {
        "repository_url": REPOSITORY or "",
        "repository_branch": BRANCH,
        "path_to_docs": "",
        "launch_buttons": {"colab_url": COLAB} if REPOSITORY else {},
    }


def _link_to_source(app: Sphinx, document: nodes.document) -> None:
    """Make the place above each listing of the package a link to its lines on GitHub."""
    for cell in document.findall(nodes.container):
        if REPOSITORY is None or cell.get("nb_element") != "cell_code_output":
            continue
        for place in list(cell.findall(nodes.literal)):
            if found := _PLACE.fullmatch(place.astext()):
                file, first, last = found.groups()
                address = f"{REPOSITORY}/blob/{BRANCH}/{file}#L{first}-L{last}"
                place.replace_self(nodes.reference("", "", place.deepcopy(), refuri=address))


def _on_page(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    if PAGES is None:  # a relative address, which Open Graph does not have
        context["metatags"] = _OWN_ADDRESS.sub("", context.get("metatags", ""))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("config-inited", _configure, priority=100)
    app.connect("doctree-read", _link_to_source)
    app.connect("html-page-context", _on_page, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
