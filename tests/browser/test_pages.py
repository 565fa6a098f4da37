"""Every page of the built book, at two widths and in two themes, as a browser shows it."""

import os
from importlib.resources import files
from pathlib import Path

import pytest

ROOT = Path(os.environ["BOOK_HTML"])
PAGES = sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.html"))
# Neither a template of the theme nor the redirect to the first page is a page.
PAGES = [page for page in PAGES if not page.startswith("_static/") and page != "index.html"]
# Listings of source have one template; the longest of them stand for all.
LISTINGS = [page for page in PAGES if page.startswith("_modules/")]
LONGEST = sorted(LISTINGS, key=lambda page: (ROOT / page).stat().st_size)[-10:]
READ = [page for page in PAGES if page not in LISTINGS]
# What axe checks: all of WCAG 2.2 AA in the light theme; in the dark one what colours decide.
RUN = {
    "light": dict(type="tag", values=["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]),
    "dark": dict(type="rule", values=["color-contrast", "link-in-text-block"]),
}
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")

# What a page must not have, by the name of the fault.
FAULTS = """() => {
  const texts = nodes => [...nodes].map(node => node.outerHTML.slice(0, 120));
  const titles = [...document.querySelectorAll("h1")].filter(node => node.checkVisibility());
  const wide = document.documentElement.scrollWidth - innerWidth;
  return {
    "scrolls sideways by": wide > 1 ? [wide] : [],
    "picture without alt": texts(document.querySelectorAll("img:not([alt])")),
    "formula not set": texts([...document.querySelectorAll(".math")]
      .filter(node => !node.querySelector("mjx-container"))),
    "formula with an error": texts(document.querySelectorAll("mjx-merror")),
    "table without a header": texts([...document.querySelectorAll("article table")]
      .filter(table => !table.querySelector("th"))),
    "titles shown": titles.length === 1 ? [] : [titles.length],
  };
}"""

RULES = """runOnly => axe.run(document, {
  runOnly, resultTypes: ["violations"], preload: false,
}).then(result => result.violations.map(
  rule => `${rule.id}, ${rule.nodes.length} times, first ${rule.nodes[0].html.slice(0, 150)}`))"""


def faults_of(visit, address, page) -> list[str]:
    """Open a page and list what is wrong with it."""
    visit.open(address + page)
    local = (address, "data:", "blob:")
    found = [f"console: {error}" for error in visit.errors]
    found += [f"outside: {url}" for url in visit.requests if not url.startswith(local)]
    for name, places in visit.page.evaluate(FAULTS).items():
        found += [f"{name}: {place}" for place in places[:3]]
    return found


def breaches_of(visit, theme) -> list[str]:
    """The rules of WCAG 2.2 AA that the open page breaks, as axe finds them."""
    visit.page.evaluate(AXE)
    return visit.page.evaluate(RULES, RUN[theme])


def test_there_are_pages():
    assert len(READ) > 30 and len(LISTINGS) > 100


def test_the_index_leads_to_the_first_page(visit, address):
    found = visit()
    found.page.goto(f"{address}index.html")
    found.page.wait_for_url("**/book/intro.html")


@pytest.mark.parametrize("page", READ)
def test_a_page_that_is_read(visit, address, page):
    found = []
    for theme in ("light", "dark"):
        desk = visit(1280, theme)
        found += [f"desk, {theme}: {fault}" for fault in faults_of(desk, address, page)]
        found += [f"desk, {theme}: axe: {rule}" for rule in breaches_of(desk, theme)]
    phone = visit(390, "dark")  # a page is as wide in both themes
    found += [f"phone: {fault}" for fault in faults_of(phone, address, page)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", LONGEST)
def test_a_listing_of_source(visit, address, page):
    assert faults_of(visit(390), address, page) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_listing_is_accessible(visit, address, theme):
    """One stands for all: they differ in the lines of source alone."""
    desk = visit(1280, theme)
    desk.open(f"{address}_modules/transformer/model/attention.html")
    assert breaches_of(desk, theme) == []


@pytest.mark.parametrize("page", ["book/intro.html", "notebooks/02_attention.html"])
def test_it_opens_from_a_folder_without_a_server(visit, html, page):
    found = visit()
    found.open((html / page).as_uri())
    assert found.errors == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in found.requests)
    assert found.page.evaluate(FAULTS)["formula not set"] == []


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_the_search_finds_without_a_network(visit, address, html, scheme):
    found = visit()
    start = address if scheme == "http" else html.as_uri() + "/"
    found.open(f"{start}search.html?q=causal")
    found.page.wait_for_selector("#search-results li a", timeout=20_000)
    titles = found.page.locator("#search-results li a").all_inner_texts()
    assert any("position see" in title for title in titles), titles
    local = (address, "file:", "data:", "blob:")
    assert all(url.startswith(local) for url in found.requests)
