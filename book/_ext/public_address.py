"""Sphinx extension: what depends on the public address, :mod:`transformer.published`.

With an address, pages link to the repository and to Colab, listings to their lines on GitHub, and
there is a sitemap. Without one, a built book has no link that leads to either.
"""

import re
from pathlib import Path
from urllib.parse import urljoin
from xml.etree import ElementTree

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

from transformer.published import PAGES, REPOSITORY

BRANCH = "main"
COLAB = "https://colab.research.google.com"
_PLACE = re.compile(r"(transformer/[\w/]+\.py), lines (\d+)-(\d+)")
_OWN_ADDRESS = re.compile(r'<meta property="og:url"[^>]*>\n?')


def options(repository: str | None) -> dict[str, object]:
    """Return the options of the theme that depend on the address of the repository."""
    buttons = ("repository", "issues", "edit_page")
    return {
        **{f"use_{name}_button": repository is not None for name in buttons},
        "repository_url": repository or "",
        "repository_branch": BRANCH,
        "path_to_docs": "",
        "launch_buttons": {"colab_url": COLAB} if repository else {},
    }


def link_to_source(document: nodes.document, repository: str) -> None:
    """Make the place above each listing of the package a link to its lines on GitHub."""
    for cell in document.findall(nodes.container):
        if cell.get("nb_element") != "cell_code_output":
            continue
        for place in list(cell.findall(nodes.literal)):
            if found := _PLACE.fullmatch(place.astext()):
                file, first, last = found.groups()
                address = f"{repository}/blob/{BRANCH}/{file}#L{first}-L{last}"
                place.replace_self(nodes.reference("", "", place.deepcopy(), refuri=address))


def sitemap(addresses: list[str]) -> bytes:
    """Write the list of all pages that search engines read."""
    root = ElementTree.Element("urlset", xmlns="http://www.sitemaps.org/schemas/sitemap/0.9")
    for address in addresses:
        ElementTree.SubElement(ElementTree.SubElement(root, "url"), "loc").text = address
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)


def _configure(app: Sphinx, config: Config) -> None:
    config.html_theme_options.update(options(REPOSITORY))
    config.html_baseurl = config.ogp_site_url = PAGES or ""


def _on_document(app: Sphinx, document: nodes.document) -> None:
    if REPOSITORY:
        link_to_source(document, REPOSITORY)


def _on_page(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    if PAGES is None:  # a relative address, which Open Graph does not have
        context["metatags"] = _OWN_ADDRESS.sub("", context.get("metatags", ""))


def _on_finish(app: Sphinx, error: Exception | None) -> None:
    if error is None and PAGES and app.builder.format == "html":
        uris = [app.builder.get_target_uri(page) for page in sorted(app.env.found_docs)]
        text = sitemap([urljoin(PAGES, uri) for uri in uris])
        (Path(app.outdir) / "sitemap.xml").write_bytes(text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("config-inited", _configure, priority=100)
    app.connect("doctree-read", _on_document)
    app.connect("html-page-context", _on_page, priority=600)
    app.connect("build-finished", _on_finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
