"""A built book on a local server, and Chromium to open it with.

These tests need both, so they run by `make browser` (part of `make test`), which sets BOOK_HTML to
the folder of the built book; without it they are not collected.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from book.make.pdf import ARGUMENTS as PRINTING
from book.make.pdf import BROWSERS, served

HTML = os.environ.get("BOOK_HTML", "")
if not HTML:
    collect_ignore_glob = ["test_*.py"]

ARGUMENTS = [*PRINTING, "--disable-quic", "--no-first-run", "--disable-component-update"]


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

    def breaches(self, *rules: str) -> list[str]:
        """The rules of WCAG 2.2 AA, or those named, that the page breaks, with one place each."""
        asked = rules or ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
        found = Axe().run(self.page, options={"runOnly": list(asked)}).response["violations"]
        return [f"{rule['id']}: {rule['nodes'][0]['html'][:150]}" for rule in found]


def watched(page: Page) -> Visit:
    """A visit that notes what goes wrong on its page and what the page asks for."""
    visit = Visit(page)
    page.on("console", lambda m: visit.errors.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: visit.errors.append(str(error)))
    page.on("request", lambda request: visit.requests.append(request.url))
    return visit


@pytest.fixture
def visit(browser) -> Iterator[Callable[..., Visit]]:
    """Make a visit of a width and a theme; phones have 390 points."""
    made = []

    def make(width: int = 1280, theme: str = "light", **options) -> Visit:
        context = browser.new_context(
            viewport=dict(width=width, height=900),
            color_scheme=theme,
            reduced_motion="reduce",
            has_touch=width < 600,
            **options,
        )
        made.append(context)
        return watched(context.new_page())

    yield make
    for context in made:
        context.close()


@pytest.fixture(scope="session")
def reader(browser) -> Iterator[Visit]:
    """A visit that goes from page to page, and loads every file of each."""
    page = browser.new_page(reduced_motion="reduce", has_touch=True)
    session = page.context.new_cdp_session(page)
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    yield watched(page)
    page.context.close()
