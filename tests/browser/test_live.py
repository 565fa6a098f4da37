"""What a reader does on the live page, from a folder and from a server, on a desk and a phone."""

import re
from html import unescape

import pytest

PAGE = "book/live.html"
GERMAN = "Das Tier überquerte die Straße nicht, weil es zu müde war."
QUESTION, FRAGE = "Where is the train station?", "Wo ist der Bahnhof?"
WAIT = 60_000  # for the model on a busy machine


def done(page):
    """Wait until the sentence is translated and every number is there."""
    page.wait_for_function(
        "document.querySelector('.live-time')?.textContent.includes(' ms')"
        " && !document.querySelector('.live-waiting')",
        timeout=WAIT,
    )


def shows(page, selector, text):
    """Wait until a part of the page has this text in it."""
    page.wait_for_function(
        "([at, text]) => document.querySelector(at)?.textContent.includes(text)",
        arg=[selector, text],
        timeout=WAIT,
    )


def translated(page, text):
    shows(page, ".live-german", text)
    done(page)


@pytest.mark.parametrize("scheme", ["file", "http"])
def test_translating_forcing_and_sharing(visit, html, address, scheme):
    """Nothing is loaded before the reader starts; then the output follows the reader."""
    found = visit()
    page = found.page
    found.open((html.as_uri() + "/" if scheme == "file" else address) + PAGE)
    assert not any("weights-" in url for url in found.requests)
    assert page.locator(".live-recorded svg").is_visible()
    page.get_by_role("button", name="Translate").click()
    translated(page, GERMAN)
    assert page.locator(".live-announce").inner_text() == GERMAN

    # Another token at the third place: the output goes on from there.
    page.locator(".live-target button").nth(2).focus()
    page.keyboard.press("Enter")
    page.locator(".live-alternatives button", has_text="ist").first.click()
    translated(page, "Das Tier ist")
    forced = page.locator(".live-german").inner_text()
    assert page.locator(".live-target .forced").inner_text() == "ist"

    # Another reader sees the same at this address.
    other = visit()
    other.open(page.url + "&run=1")
    translated(other.page, forced)
    assert other.page.locator(".live-target .forced").inner_text() == "ist"
    page.get_by_role("button", name="Back to the model").click()
    translated(page, GERMAN)
    assert found.errors == other.errors == []


def test_typing(visit, address):
    """Each text replaces the one before; what cannot be translated is said."""
    found = visit()
    page = found.page
    # Values that do not exist are passed over.
    found.open(f"{address}{PAGE}#s=Hello.&z=moon&l=99&h=-7&b=engine+encoder.9&f=x.-1&stop=77&run=1")
    translated(page, "Hallo!")
    box = page.get_by_label("An English sentence")
    box.fill("")
    box.press_sequentially(QUESTION, delay=15)
    translated(page, FRAGE)
    assert "Where" in page.url
    for text, note in (
        ("   ", "Type an English sentence."),
        ("very " * 150 + "long", "up to 100"),
        ("I like 🍎.", "🍎"),
    ):
        box.fill(text)
        shows(page, ".live-note", note)
    box.fill(QUESTION)
    translated(page, FRAGE)
    assert page.locator(".live-note").inner_text() == "" and found.errors == []


def test_breaking_and_repairing(visit, address):
    found = visit()
    page = found.page
    found.open(f"{address}{PAGE}#run=1")
    translated(page, GERMAN)
    page.locator(".live-parts button", has_text="Residual").click()
    assert page.get_by_role("button", name="Switch it off").is_disabled()
    page.locator("input[value=apart]").check()
    page.get_by_role("button", name="Switch it off").click()
    shows(page, ".live-verdict", "has changed")
    whole, now = page.locator(".live-compare dd").all_inner_texts()
    assert whole == GERMAN != now
    assert "Residual" in page.locator(".live-banner").inner_text()
    page.get_by_role("button", name="Repair").click()
    translated(page, GERMAN)
    page.get_by_role("tab", name="Layer").click()
    page.locator(".live-map input").nth(2).check()
    page.wait_for_selector(".live-map.muted", timeout=WAIT)
    assert "head 3" in page.locator(".live-banner").inner_text() and found.errors == []


def test_zooming(visit, address):
    """From the sentence to one product, by keyboard, and what is shown adds up."""
    found = visit()
    page = found.page
    found.open(f"{address}{PAGE}#run=1")
    translated(page, GERMAN)
    page.get_by_role("tab", name="Sentence").focus()
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    assert page.get_by_role("tab", name="Layer").evaluate("node => node === document.activeElement")
    # Every row of a map is a distribution.
    sums = page.evaluate(
        """[...document.querySelectorAll(".live-heat tbody tr")].map(row =>
          [...row.querySelectorAll("td")].reduce((sum, cell) => sum + +cell.textContent, 0))"""
    )
    assert sums and all(abs(total - 1) < 0.08 for total in sums)  # of rounded numbers
    page.locator(".live-heat").nth(1).locator("td[tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    assert re.match(r"\S+ attends to animal: head 1 ", page.locator(".live-readout").inner_text())
    page.keyboard.press("Enter")
    page.wait_for_selector(".live-products")
    # The page's own products, division and softmax give the worker's weight.
    assert float(page.locator("[data-check]").get_attribute("data-check")) < 1e-5
    page.get_by_role("tab", name="Output").click()
    page.wait_for_selector(".live-tree", timeout=WAIT)
    share = page.locator(".live-weight").first
    before = share.inner_text()
    page.get_by_label("Temperature").press("ArrowLeft")
    assert share.inner_text() != before
    assert GERMAN in page.locator(".live-view").inner_text() and found.errors == []


def test_the_tour(visit, html, address):
    """Each stop has a view, and links to places that exist."""
    found = visit()
    page = found.page
    found.open(address + PAGE)
    page.get_by_role("button", name="Take the tour").click()
    translated(page, GERMAN)
    stops = set()
    following = page.get_by_role("button", name="Next stop")
    while following.count():
        following.click()
        page.wait_for_function("!document.querySelector('.live-waiting')", timeout=WAIT)
        stops.add(page.locator(".live-tour h3").inner_text())
        assert page.locator(".live-view > div > *").count() >= 1
        links = page.locator(".live-tour a").evaluate_all("nodes => nodes.map(each => each.href)")
        for link in links:
            path, _, anchor = link.removeprefix(address).partition("#")
            assert f'id="{anchor}"' in (html / path).read_text() or not anchor, link
    assert len(stops) == 11
    page.get_by_role("button", name="End the tour").click()
    assert not page.locator(".live-tour").is_visible() and found.errors == []


@pytest.mark.parametrize("width, theme", [(1280, "light"), (390, "dark")])
def test_every_level_is_accessible_and_fits(visit, address, width, theme):
    found = visit(width, theme)
    page = found.page
    found.open(f"{address}{PAGE}#run=1")
    for level in page.get_by_role("tab").all():
        level.click()
        done(page)
        assert found.breaches() == [], level.inner_text()
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 1
    assert found.errors == []


def test_the_start_page_leads_to_it(visit, html):
    found = visit()
    found.open((html / "book" / "intro.html").as_uri())
    found.page.locator(".live-hero input").fill(QUESTION)
    found.page.keyboard.press("Enter")
    translated(found.page, FRAGE)
    assert "live.html" in found.page.url and found.errors == []


def test_a_chapter_shows_the_view_of_its_subject(visit, address):
    """In a frame as high as the view, in the theme of the chapter; the address stays."""
    found = visit(390)
    page = found.page
    found.open(f"{address}notebooks/22_heads_learned.html")
    box = page.locator(".live-hero")
    box.get_by_role("button", name="Translate").click()
    page.wait_for_function("frames.length === 1")
    frame = page.frames[1]
    translated(frame, GERMAN)
    assert not frame.locator(".live-ask, .bd-header, .live-tour").first.is_visible()
    page.wait_for_function(
        "document.querySelector('.live-hero iframe').clientHeight > 400", timeout=WAIT
    )
    scrolls = "({ scrollHeight, clientHeight }) => scrollHeight - clientHeight"
    assert frame.locator("html").evaluate(scrolls) <= 1
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    frame.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    box.locator("input").fill(QUESTION)
    page.keyboard.press("Enter")
    translated(frame, FRAGE)
    assert sum("live.html" in url for url in found.requests) == 1  # the model stays in the frame
    assert page.url.endswith("22_heads_learned.html") and found.errors == []


def test_the_boxes_of_all_chapters_lead_to_views_that_exist(visit, address, html):
    texts = [path.read_text() for path in (html / "notebooks").glob("*.html")]
    states = re.findall(r'class="live-hero[^>]*data-state="([^"]+)"', "".join(texts))
    assert states
    found = visit()
    found.open(f"{address}{PAGE}#s=Hello.&run=1")
    for state in map(unescape, states):
        asked = f"#{state}&s=Hello."
        found.page.evaluate("hash => { location.hash = hash; }", asked)
        done(found.page)
        assert found.page.locator(".live-view").inner_text().strip()
        # The link to share has all of it, so every part of it exists.
        found.page.get_by_role("button", name="Copy a link").click()
        whole = found.page.evaluate("hash => LiveState.write(LiveState.read(hash))", asked)
        assert found.page.url.partition("#")[2] == whole.removeprefix("#"), state
    assert found.errors == []
