"""Sphinx extension: what depends on the public address, :mod:`transformer.published`.

With an address, pages link to the repository and to Colab, and a link to a page shows a card.
Without one, a built book has no link that leads to either.
"""

import re

from sphinx.application import Sphinx
from sphinx.config import Config

from transformer.published import PAGES, REPOSITORY

BRANCH = "main"
COLAB = "https://colab.research.google.com"
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


def _on_page(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    if PAGES is None:  # a relative address, which Open Graph does not have
        context["metatags"] = _OWN_ADDRESS.sub("", context.get("metatags", ""))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("config-inited", _configure, priority=100)
    app.connect("html-page-context", _on_page, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
