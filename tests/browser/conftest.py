"""A built book on a local server, and Chromium to open it with.

These tests need both, so they run by `make browser` (part of `make test`), which sets BOOK_HTML to
the folder of the built book; without it they are not collected.
"""

import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from book.make.pdf import BROWSERS, served

HTML = os.environ.get("BOOK_HTML", "")
if not HTML:
    collect_ignore_glob = ["test_*.py"]

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>One widget</title>
<meta name="viewport" content="width=device-width"><style>:root {{ color-scheme: light dark }}
body {{ font-family: sans-serif; background: #fff; color: #222b33 }}
@media (prefers-color-scheme: dark) {{ body {{ background: #121619; color: #ced6dd }} }}
</style></head><body><main><h1>One widget</h1><div>{html}</div></main></body></html>"""
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def html() -> Path:
    folder = Path(HTML).resolve()
    assert (folder / "index.html").exists(), f"{folder} holds no built book"
    return folder


@pytest.fixture(scope="session")
def address(html) -> Iterator[str]:
    with served(html) as address:
        yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert found, "no Chromium on the PATH: `make browser` says how to get one"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield chromium
        chromium.close()


@dataclass
class Visit:
    """A page in a browser of its own, with its errors and its requests."""

    page: Page
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, address: str) -> None:
        """Go there and wait until everything has loaded."""
        self.errors.clear()
        self.requests.clear()
        self.page.goto(address, wait_until="load")
        self.page.evaluate("document.fonts.ready.then(() => 0)")


def watched(page: Page) -> Visit:
    """A visit that notes what goes wrong on its page and what the page asks for."""
    visit = Visit(page)
    page.on("console", lambda m: visit.errors.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: visit.errors.append(str(error)))
    page.on("request", lambda request: visit.requests.append(request.url))
    return visit


class Contexts:
    """Contexts that are used again: a page in a new one costs Chromium twice the work.

    Each keeps an empty page, so that its process stays for the next one.
    """

    def __init__(self, browser: Browser):
        self.browser = browser
        self.idle: dict[tuple, list[BrowserContext]] = defaultdict(list)
        self.used: list[tuple[tuple, BrowserContext]] = []

    def take(self, is_phone: bool, **options) -> BrowserContext:
        """A context without pages of others and without anything stored."""
        kind = (is_phone, *sorted(options.items()))
        if self.idle[kind]:
            context = self.idle[kind].pop()
        else:
            still = dict(reduced_motion="reduce", has_touch=is_phone)
            context = self.browser.new_context(**still, **options)
            context.new_page()
        self.used.append((kind, context))
        return context

    def give_back(self) -> None:
        """Close the pages in all used contexts and remove what they have stored."""
        for kind, context in self.used:
            empty, *pages = context.pages
            session = context.new_cdp_session(empty)
            for page in pages:
                place = urlsplit(page.url)
                origin = f"{place.scheme}://{place.netloc}/"
                if place.scheme in ("file", "http"):
                    session.send(
                        "Storage.clearDataForOrigin", dict(origin=origin, storageTypes="all")
                    )
                page.close()
            session.detach()
            self.idle[kind].append(context)
        self.used.clear()


@pytest.fixture(scope="session")
def contexts(browser) -> Contexts:
    return Contexts(browser)


@pytest.fixture
def visit(contexts):
    """Make a visit of a width and a theme; phones have 390 points."""

    def make(width: int = 1280, theme: str = "light", **options) -> Visit:
        page = contexts.take(width < 600, **options).new_page()
        page.set_viewport_size(dict(width=width, height=900))
        page.emulate_media(color_scheme=theme)
        return watched(page)

    yield make
    contexts.give_back()


@pytest.fixture(scope="module")
def reader(browser) -> Iterator[Callable[[int], Visit]]:
    """Visits that go from page to page: one of a width, which loads every file of each page."""
    visits: dict[int, Visit] = {}

    def at(width: int) -> Visit:
        if width not in visits:
            size = dict(width=width, height=900)
            page = browser.new_page(viewport=size, reduced_motion="reduce", has_touch=width < 600)
            session = page.context.new_cdp_session(page)
            session.send("Network.setCacheDisabled", {"cacheDisabled": True})
            visits[width] = watched(page)
        return visits[width]

    yield at
    for visit in visits.values():
        visit.page.context.close()


@pytest.fixture(scope="session")
def alone() -> Callable[[str], str]:
    """Make a page that holds only a widget."""
    return lambda html: PAGE.format(html=html)
