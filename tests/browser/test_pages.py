"""Every page of the built book, at two widths and in two themes, as a browser shows it."""

import gzip
import io
import os
import re
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pypdf import PdfReader

ROOT = Path(os.environ["BOOK_HTML"])
PAGES = sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.html"))
# Neither a template of the theme nor the redirect to the first page is a page.
PAGES = [page for page in PAGES if not page.startswith("_static/") and page != "index.html"]
# Listings of source have one template; the longest represents all.
LISTINGS = [page for page in PAGES if page.startswith("_modules/")]
LONGEST = max(LISTINGS, key=lambda page: (ROOT / page).stat().st_size)
READ = [page for page in PAGES if page not in LISTINGS]
# What axe checks: the structure of a page once, and in each theme what its colours decide, by rule
# and where the rule looks.
STRUCTURE = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
COLOURS = {"color-contrast": "[data-look]", "link-in-text-block": "a[href][data-look]"}
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")

FAULTS, RULES = (Path(__file__).with_name(name).read_text() for name in ("faults.js", "rules.js"))
# A page without its figures, in bytes: as it is, and as a server sends it; and its number of files.
# The largest is the search, whose index of all words takes 0.6 million.
LARGEST, SENT, FILES = 1_100_000, 300_000, 40
FIGURES = re.compile(
    rb"<figure\b.*?</figure>|<svg\b.*?</svg>|<script type=.application/json.*?</script>", re.DOTALL
)

LEGIBLE: set[str] = set()


def to_theme(visit, theme) -> None:
    """Change the theme of the reader's system; the page follows."""
    visit.page.emulate_media(color_scheme=theme)
    visit.page.wait_for_function(
        "theme => document.documentElement.dataset.theme === theme", arg=theme
    )


def faults_on(visit, address) -> list[str]:
    """List what is wrong with the open page."""
    local = (address, "data:", "blob:")
    found = [f"console: {error}" for error in visit.errors]
    found += [f"outside: {url}" for url in visit.requests if not url.startswith(local)]
    for name, places in visit.page.evaluate(FAULTS).items():
        found += [f"{name}: {place}" for place in places[:3]]
    return found


def overweight(visit, address) -> list[str]:
    """The bytes that the open page has loaded for all but pictures, where they are too many."""
    loaded = {urlsplit(url).path for url in visit.requests if url.startswith(address)}
    whole = sent = 0
    for path in loaded:
        if Path(path).suffix in (".png", ".svg", ".jpg"):
            continue
        content = FIGURES.sub(b"", (ROOT / path.lstrip("/")).read_bytes())
        whole += len(content)
        sent += len(gzip.compress(content, 6))
    found = [(LARGEST, whole, "bytes"), (SENT, sent, "bytes compressed")]
    found.append((FILES, len(visit.requests), "files"))
    return [f"{size:,} {unit}" for limit, size, unit in found if size > limit]


def breaches_of(visit, structure: bool) -> list[str]:
    """The rules of WCAG 2.2 AA that the open page breaks, as axe finds them."""
    if visit.page.evaluate("typeof axe") == "undefined":
        visit.page.evaluate(AXE)
    asked = [STRUCTURE if structure else None, COLOURS, sorted(LEGIBLE)]
    found, looks = visit.page.evaluate(RULES, asked)
    if not found:
        LEGIBLE.update(looks)
    return found


@pytest.mark.parametrize("page", [*READ, LONGEST])
def test_a_page(reader, address, page):
    """Opened once, on a desk in the light theme; then it turns dark, then narrow."""
    reader.page.set_viewport_size(dict(width=1280, height=900))
    reader.page.emulate_media(color_scheme="light")
    reader.open(address + page)
    found = overweight(reader, address)
    for theme in ("light", "dark"):
        to_theme(reader, theme)
        found += [f"axe: {rule}" for rule in breaches_of(reader, structure=theme == "light")]
        found += [f"desk, {theme}: {fault}" for fault in faults_on(reader, address)]
    reader.page.set_viewport_size(dict(width=390, height=900))
    found += [f"phone: {fault}" for fault in faults_on(reader, address)]
    assert not found, "\n".join(found)


def test_a_phone_opens_a_chapter(visit, address):
    found = visit(width=390, theme="dark")
    found.open(f"{address}notebooks/02_attention.html")
    assert overweight(found, address) + faults_on(found, address) == []


def test_it_opens_from_a_folder_without_a_server(visit, html):
    found = visit()
    found.open((html / "notebooks" / "02_attention.html").as_uri())
    assert found.errors == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in found.requests)
    assert found.page.evaluate(FAULTS)["formula not set"] == []


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_the_search_finds_without_a_network(visit, address, html, scheme):
    """As a reader types, on any page, and a chapter by its number; the index is loaded then."""
    found = visit()
    start = address if scheme == "http" else html.as_uri() + "/"
    found.open(f"{start}notebooks/02_attention.html")
    assert not any("searchindex" in url for url in found.requests)
    found.page.keyboard.press("Control+k")
    dialog = found.page.locator("#pst-search-dialog")
    for query, title in (("chapter 22", "the heads learn?"), ("causal", "position see")):
        dialog.locator("input").fill("")
        dialog.locator("input").press_sequentially(query)
        dialog.locator("#search-results a", has_text=title).first.wait_for(timeout=20_000)
    dialog.locator("#search-results li a").first.click()
    found.page.wait_for_url("**/*.html*")
    local = (address, "file:", "data:", "blob:")
    assert all(url.startswith(local) for url in found.requests)
    assert scheme == "file" or not found.errors  # excerpts need a server


def test_without_scripts_a_page_says_what_there_is_instead(visit, address):
    page = visit(java_script_enabled=False).page
    for name, instead, gone in (
        ("notebooks/02_attention.html", ".exercise-without", ".exercise form"),
        ("book/live.html", ".live-recorded svg", ".live-ask"),
        ("book/exercises.html", "table.filtered tbody tr", "form.row-filters"),
    ):
        page.goto(address + name)
        assert page.locator(instead).first.is_visible(), name
        assert not page.locator(gone).first.is_visible(), name


def test_reading_and_code(visit, address):
    """The switch opens the scaffolding, where the reader stays, and is remembered."""
    found = visit()
    page = found.page
    found.open(f"{address}notebooks/27_myths.html")
    folds = page.locator("details.fold")
    assert folds.count() > 2 and page.locator("details.fold[open]").count() == 0
    assert page.locator("summary", has_text="losses are measured").first.is_visible()
    assert "pip install" not in page.locator("article").text_content()

    heading = page.locator("article h2").nth(3)
    heading.evaluate("node => scrollTo(0, node.getBoundingClientRect().top + scrollY - 120)")
    before = heading.bounding_box()["y"]
    page.locator(".code-switch input").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("details.fold:not([open])").count() == 0
    assert abs(heading.bounding_box()["y"] - before) < 2

    found.open(f"{address}notebooks/04_scaling.html")
    assert page.locator("details.fold:not([open])").count() == 0
    assert page.evaluate(FAULTS)["layout shift"] == []
    assert page.locator(".code-switch input").last.is_checked()


def test_a_page_prints_the_same_in_both_themes(visit, address):
    """Light, whatever is on the screen: the ink of every sheet is equal."""
    printed = []
    for theme in ("light", "dark"):
        found = visit(theme=theme)
        found.open(f"{address}notebooks/04_scaling.html")
        assert found.page.evaluate("document.documentElement.dataset.theme") == theme
        reader = PdfReader(io.BytesIO(found.page.pdf(format="A4", print_background=True)))
        printed.append([sheet.get_contents().get_data() for sheet in reader.pages])
    light, dark = printed
    assert light == dark and len(light) > 3
