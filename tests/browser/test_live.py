"""What a reader does on the live page, from a folder and from a server, on a desk and a phone."""

import re
from urllib.parse import parse_qs, urlparse

import pytest
from axe_playwright_python.sync_playwright import Axe

PAGE = "book/live.html"
SENTENCE = "The animal didn't cross the street because it was too tired."
GERMAN = "Das Tier überquerte die Straße nicht, weil es zu müde war."
# As for all pages: all of WCAG 2.2 AA in the light theme; in the dark one what colours decide.
RULES = {
    "light": dict(type="tag", values=["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]),
    "dark": dict(type="rule", values=["color-contrast", "link-in-text-block"]),
}
WAIT = 60_000  # for the model on a busy machine


@pytest.fixture(params=["file", "http"])
def start(request, html, address):
    """The address of the book, as a folder and as a site."""
    return html.as_uri() + "/" if request.param == "file" else address


def done(page):
    """Wait until the sentence is translated and every number is there."""
    page.wait_for_function(
        "document.querySelector('.live-time')?.textContent.includes(' ms')", timeout=WAIT
    )
    page.wait_for_function("!document.querySelector('.live-waiting')", timeout=WAIT)


def german(page):
    return page.locator(".live-german").inner_text()


def translated(page, text):
    """Wait until the German is this."""
    page.wait_for_function(
        "text => document.querySelector('.live-german')?.textContent === text",
        arg=text,
        timeout=WAIT,
    )
    done(page)


def tokens(page):
    return page.locator(".live-target li").all_inner_texts()


def test_nothing_is_loaded_before_the_reader_starts(visit, start):
    found = visit()
    found.open(start + PAGE)
    assert not any("weights-" in url for url in found.requests)
    assert "8.3 MB" in found.page.locator(".live-note").inner_text()
    assert found.page.locator(".live-recorded svg").is_visible()
    assert found.errors == []


def test_translating_forcing_and_sharing(visit, start):
    found = visit()
    page = found.page
    found.open(start + PAGE)
    page.get_by_role("button", name="Translate").click()
    translated(page, GERMAN)
    assert sum("weights-" in url for url in found.requests) == 9
    assert tokens(page)[:2] == ["Das", "Tier"] and tokens(page)[-1] == "<eos>"
    assert page.locator(".live-announce").inner_text() == GERMAN

    # Another token at the third place: the output goes on from there.
    page.locator(".live-target button").nth(2).focus()
    page.keyboard.press("Enter")
    page.locator(".live-alternatives button", has_text="ist").first.click()
    page.wait_for_function(
        "document.querySelector('.live-german').textContent.startsWith('Das Tier ist')",
        timeout=WAIT,
    )
    done(page)
    forced = german(page)
    assert forced.endswith(".") and forced != GERMAN
    assert page.locator(".live-target .forced").inner_text() == "ist"

    # Another reader sees the same at this address.
    other = visit()
    other.open(page.url + "&run=1")
    translated(other.page, forced)
    assert other.page.locator(".live-target .forced").inner_text() == "ist"

    page.get_by_role("button", name="Back to the model").click()
    translated(page, GERMAN)
    assert found.errors == other.errors == []


def test_typing(visit, start):
    """Each text replaces the one before; what cannot be translated is said."""
    found = visit()
    page = found.page
    found.open(f"{start}{PAGE}#s=Hello.&run=1")
    done(page)
    box = page.get_by_label("An English sentence")
    note = page.locator(".live-note")
    box.fill("")
    box.press_sequentially("Where is the train station?", delay=15)
    translated(page, "Wo ist der Bahnhof?")
    assert "Where" in page.url

    box.fill("   ")
    page.wait_for_function("!document.querySelector('.live-target')")
    assert note.inner_text() == "Type an English sentence."
    box.fill("very " * 150 + "long")
    page.wait_for_function(
        "/up to 100/.test(document.querySelector('.live-note').textContent)", timeout=WAIT
    )
    for text, sign in (("I like 🍎.", "🍎"), ("猫が好きです", "猫")):
        box.fill(text)
        page.wait_for_function(
            "sign => document.querySelector('.live-note').textContent.includes(sign)", arg=sign
        )
        done(page)
    box.fill("Where is the train station?")
    translated(page, "Wo ist der Bahnhof?")
    assert note.inner_text() == ""
    assert found.errors == []


def test_breaking_and_repairing(visit, start):
    found = visit()
    page = found.page
    found.open(f"{start}{PAGE}#run=1")
    translated(page, GERMAN)
    for part, guess, changed in (("Cross-attention", "same", True), ("Residual", "apart", True)):
        page.locator(".live-parts button", has_text=part).click()
        assert page.get_by_role("button", name="Switch it off").is_disabled()
        page.locator(f"input[value={guess}]").check()
        page.get_by_role("button", name="Switch it off").click()
        verdict = page.locator(".live-verdict")
        page.wait_for_function(
            "/translation/.test(document.querySelector('.live-verdict')?.textContent)",
            timeout=WAIT,
        )
        assert ("has changed" in verdict.inner_text()) == changed
        whole, now = page.locator(".live-compare dd").all_inner_texts()
        assert whole == GERMAN and (now != GERMAN) == changed
        assert part in page.locator(".live-banner").inner_text()
        assert page.locator(".live-question a[href*=notebooks]").count() == 1
    page.get_by_role("button", name="Repair").click()
    translated(page, GERMAN)
    assert not page.locator(".live-banner").is_visible()
    assert found.errors == []


def test_a_muted_head(visit, address):
    found = visit()
    page = found.page
    found.open(f"{address}{PAGE}#z=layer&l=2&run=1")
    done(page)
    page.locator(".live-map input").nth(2).check()
    page.wait_for_selector(".live-map.muted", timeout=WAIT)
    assert "layer 3, head 3" in page.locator(".live-banner").inner_text()
    assert "decoder.2.cross_attention.2" in page.url.replace("%20", " ")
    assert found.errors == []


def test_zooming(visit, start):
    """From the sentence to one product, by keyboard, and what is shown adds up."""
    found = visit()
    page = found.page
    found.open(f"{start}{PAGE}#run=1")
    translated(page, GERMAN)
    page.get_by_role("tab", name="Sentence").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(".live-tower").count() == 2
    assert page.locator(".live-strip").count() == 2 + 6 * 3 + 2 + 9 * 3
    page.keyboard.press("ArrowRight")
    assert page.locator(".live-heat").count() == 4
    assert page.get_by_role("tab", name="Layer").evaluate("node => node === document.activeElement")

    # Every row of a map is a distribution.
    sums = page.evaluate(
        """[...document.querySelectorAll(".live-heat tbody tr")].map(row =>
          [...row.querySelectorAll("td")].reduce((sum, cell) => sum + +cell.textContent, 0))"""
    )
    assert all(abs(total - 1) < 0.08 for total in sums)  # of rounded numbers
    page.locator(".live-heat").nth(1).locator("td[tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    assert re.match(r"\S+ attends to animal: head 1 ", page.locator(".live-readout").inner_text())
    page.keyboard.press("Enter")
    page.wait_for_selector(".live-products")
    assert page.get_by_role("tab", name="Head").get_attribute("aria-selected") == "true"
    assert "layer 3, head 2" in page.locator(".live-inspector").inner_text()
    # The page's own products, division and softmax give the worker's weight.
    assert float(page.locator("[data-check]").get_attribute("data-check")) < 1e-5
    page.locator("summary", has_text="All numbers").click()
    page.wait_for_selector(".live-step details td")
    assert page.locator(".live-step details tbody tr").count() == 64

    page.get_by_role("tab", name="Output").click()
    page.wait_for_selector(".live-tree", timeout=WAIT)
    share = page.locator(".live-weight").first
    before = share.inner_text()
    page.get_by_label("Temperature").focus()
    for _ in range(8):
        page.keyboard.press("ArrowLeft")
    assert share.inner_text() != before
    assert GERMAN in page.locator(".live-view").inner_text()
    assert found.errors == []


def test_the_tour(visit, html, address):
    """Twelve stops, each with a view and a chapter that exists."""
    found = visit()
    page = found.page
    found.open(address + PAGE)
    page.get_by_role("button", name="Take the tour").click()
    translated(page, GERMAN)
    stops = []
    while True:
        page.wait_for_function("!document.querySelector('.live-waiting')", timeout=WAIT)
        stops.append(page.locator(".live-tour h3").inner_text())
        assert page.locator(".live-tour a[href*=notebooks]").count() >= 1
        assert page.locator(".live-view > div > *").count() >= 1
        for link in page.locator("#live a").evaluate_all("nodes => nodes.map(each => each.href)"):
            path, _, anchor = link.removeprefix(address).partition("#")
            text = (html / path).read_text(encoding="utf-8")
            assert not anchor or f'id="{anchor}"' in text, link
        following = page.get_by_role("button", name="Next stop")
        if not following.count():
            break
        following.click()
    assert len(set(stops)) == 12
    page.get_by_role("button", name="End the tour").click()
    assert not page.locator(".live-tour").is_visible()
    assert found.errors == []


@pytest.mark.parametrize("level", ["sentence", "stack", "layer", "head", "output"])
@pytest.mark.parametrize("width, theme", [(1280, "light"), (390, "dark")])
def test_every_level_is_accessible_and_fits(visit, address, level, width, theme):
    found = visit(width, theme)
    page = found.page
    found.open(f"{address}{PAGE}#z={level}&run=1")
    done(page)
    breaches = Axe().run(page, options=dict(runOnly=RULES[theme])).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in breaches] == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 1
    if width < 600:
        handle = page.locator(".live-handle")
        assert not page.locator(".live-inspector > div").is_visible()
        handle.click()
        assert page.locator(".live-inspector > div").is_visible()
    assert found.errors == []


def test_an_address_with_invalid_values_opens_the_page(visit, address):
    found = visit()
    found.open(f"{address}{PAGE}#s=Hello.&z=moon&l=99&h=-7&b=engine+encoder.9&f=x.-1&stop=77&run=1")
    done(found.page)
    assert german(found.page) == "Hallo!"
    assert found.errors == []


def test_without_scripts_there_is_a_recorded_run(visit, address):
    found = visit(java_script_enabled=False)
    found.page.goto(address + PAGE)
    assert found.page.locator(".live-recorded svg").is_visible()
    assert not found.page.locator(".live-ask").is_visible()


def test_the_start_page_leads_to_it(visit, start):
    found = visit()
    page = found.page
    found.open(f"{start}book/intro.html")
    page.locator(".live-hero input").fill("Where is the train station?")
    page.keyboard.press("Enter")
    page.wait_for_url("**/live.html*")
    translated(page, "Wo ist der Bahnhof?")
    assert found.errors == []


@pytest.mark.parametrize("width", [1280, 390])
def test_a_chapter_shows_the_view_of_its_subject(visit, start, width):
    """In a frame as high as the view, in the theme of the chapter; the address stays."""
    found = visit(width)
    page = found.page
    found.open(f"{start}notebooks/21_heads_learned.html")
    box = page.locator(".live-hero")
    assert not any("weights-" in url for url in found.requests)
    box.get_by_role("button", name="Translate").click()
    page.wait_for_function("frames.length === 1")
    frame = page.frames[1]
    done(frame)
    assert german(frame) == GERMAN
    assert frame.locator(".live-maps figure, .live-maps > *").count() == 4
    assert not frame.locator(".live-ask, .bd-header, .live-tour").first.is_visible()
    scrolls = "({ scrollHeight, clientHeight }) => scrollHeight - clientHeight"
    page.wait_for_function(
        "document.querySelector('.live-hero iframe').clientHeight > 400", timeout=WAIT
    )
    assert frame.locator("html").evaluate(scrolls) <= 1
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    frame.wait_for_function("document.documentElement.dataset.theme === 'dark'")

    box.locator("input").fill("Where is the train station?")
    page.keyboard.press("Enter")
    translated(frame, "Wo ist der Bahnhof?")
    assert sum("live.html" in url for url in found.requests) == 1  # the model stays in the frame
    assert "Where" in box.get_by_role("link").get_attribute("href")
    assert page.url.endswith("21_heads_learned.html")
    assert found.errors == []


def test_the_boxes_of_all_chapters_lead_to_views_that_exist(visit, address, html):
    pages = [p for p in (html / "notebooks").glob("*.html") if "live-hero" in p.read_text()]
    assert pages
    found = visit()
    for each in pages:
        found.open(f"{address}notebooks/{each.name}")
        state = found.page.locator(".live-hero").get_attribute("data-state")
        found.open(f"{address}{PAGE}?embed#{state}&s=Hello.&run=1")
        done(found.page)
        assert found.page.locator(".live-view").inner_text().strip()
        # The page keeps what it knows of a state in its address.
        kept = parse_qs(urlparse(found.page.url).fragment)
        assert kept.items() >= parse_qs(state).items()
        assert found.errors == []
