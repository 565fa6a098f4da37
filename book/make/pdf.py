"""Print the built book into one file: Chromium prints each page, pypdf joins them.

The pages follow the table of contents; parts, titles and headings become bookmarks. Solutions are
shown, interactive figures become pictures, and links between pages lead through the file.
"""

import functools
import http.server
import io
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from playwright.sync_api import Page, Route, sync_playwright
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, NameObject, TextStringObject

from transformer.published import PAGES

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
# The data of an interactive figure, and the script that would replace its picture.
PLAYED = re.compile(r'<script type="application/json">.*?</script>\s*<script>.*?</script>', re.S)
READY, TITLES = (Path(__file__).with_name(f"{name}.js").read_text() for name in ("ready", "titles"))
FOOTER = """<div style="width:100%;margin:0 14mm;font:7.5pt system-ui,sans-serif;color:#555;
display:flex;justify-content:space-between"><span>{title}</span>
<span class="pageNumber"></span></div>"""


def pages_of(contents: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """Return the pages of each part in order; the cover is a part without a name."""
    parts = [("", [contents["root"]])]
    for part in contents["parts"]:
        files = [chapter["file"] for chapter in part["chapters"]]
        parts.append((part.get("caption", ""), files))
    return parts


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder locally; yield its address."""
    handler = functools.partial(_Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()


def _still(route: Route) -> None:
    """Answer with the page without the scripts of its interactive figures."""
    answer = route.fetch()
    route.fulfill(response=answer, body=PLAYED.sub("", answer.text()))


def print_page(browser_page: Page, address: str) -> tuple[list[str], bytes]:
    """Return the title of a page and its headings, and the page as PDF."""
    browser_page.goto(address, wait_until="load")
    browser_page.evaluate(READY)
    titles: list[str] = browser_page.evaluate(TITLES)
    title = titles[0]
    footer = FOOTER.format(title=title.replace("&", "&amp;").replace("<", "&lt;"))
    return titles, browser_page.pdf(
        format="A4",
        margin={"top": "15mm", "bottom": "17mm", "left": "14mm", "right": "14mm"},
        scale=0.72,  # 80 columns of code fit
        print_background=True,
        outline=True,
        tagged=True,
        display_header_footer=True,
        header_template="<span></span>",
        footer_template=footer,
    )


def places(reader: PdfReader) -> list[int]:
    """Return the pages of the headings of the second level."""
    nested = [item for item in reader.outline if isinstance(item, list)]
    items = [item for item in (nested[0] if nested else []) if not isinstance(item, list)]
    return [reader.get_destination_page_number(item) or 0 for item in items]


def bind(
    printed: list[tuple[str, list[tuple[str, list[str], bytes]]]], local: str, public: str | None
) -> PdfWriter:
    """Join the PDFs of each part's (name, titles, PDF); None for public removes links out of it."""
    writer, first = PdfWriter(), {}
    for part, pages in printed:
        parent = None
        for name, titles, pdf in pages:
            first[name] = len(writer.pages)
            reader = PdfReader(io.BytesIO(pdf))
            writer.append(reader, import_outline=False)
            if part and parent is None:
                parent = writer.add_outline_item(title=part, page_number=first[name])
            chapter = writer.add_outline_item(
                title=titles[0], page_number=first[name], parent=parent
            )
            for heading, number in zip(titles[1:], places(reader), strict=False):
                page = first[name] + number
                writer.add_outline_item(title=heading, page_number=page, parent=chapter)
    for sheet in writer.pages:
        for annotation in sheet.get("/Annots") or ():
            link = annotation.get_object()
            action = link.get("/A")
            address = str(action.get("/URI", "")) if action else ""
            if not address.startswith(local):
                continue
            name = address.removeprefix(local).partition("#")[0].removesuffix(".html")
            if name in first:
                target = writer.pages[first[name]].indirect_reference
                action[NameObject("/S")] = NameObject("/GoTo")
                action[NameObject("/D")] = ArrayObject([target, NameObject("/Fit")])
                del action["/URI"]
            elif public is None:
                del link["/A"]
            else:
                action[NameObject("/URI")] = TextStringObject(public + address.removeprefix(local))
    writer.compress_identical_objects()
    return writer


def pdf(
    html: Annotated[Path, typer.Argument(help="folder of the built book")],
    output: Annotated[Path, typer.Argument(help="the file to write")],
    only: Annotated[
        list[str] | None, typer.Option(help="a page, such as notebooks/06_masks; repeat for more")
    ] = None,
) -> None:
    """Print the built book into one PDF."""
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    parts = pages_of(yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8")))
    if only:
        if unknown := set(only) - {name for _, names in parts for name in names}:
            raise typer.BadParameter(f"_toc.yml does not list {', '.join(sorted(unknown))}")
        parts = [(part, [name for name in names if name in only]) for part, names in parts]
    parts = [(part, names) for part, names in parts if names]
    missing = [n for _, names in parts for n in names if not (html / f"{n}.html").exists()]
    if missing or not parts:
        raise typer.BadParameter(f"{html} does not hold {', '.join(missing) or 'any page'}")
    chromium = next(filter(None, map(shutil.which, BROWSERS)), None)
    if chromium is None:
        raise typer.BadParameter("no Chromium on the PATH; on Debian: apt install chromium")

    with served(html) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        page = browser.new_page(color_scheme="light", reduced_motion="reduce")
        page.route("**/*.html", _still)
        printed = [
            (part, [(name, *print_page(page, f"{address}{name}.html")) for name in names])
            for part, names in parts
        ]
        browser.close()
        writer = bind(printed, address, PAGES)
    writer.add_metadata({"/Title": settings["title"], "/Author": settings["author"]})
    writer.page_mode = "/UseOutlines"
    # An interrupted run leaves no half-written book.
    temporary = output.with_suffix(".tmp")
    output.parent.mkdir(parents=True, exist_ok=True)
    with temporary.open("wb") as file:
        writer.write(file)
    temporary.replace(output)
    size = output.stat().st_size / 1e6
    print(f"{output}: {len(writer.pages)} pages, {size:.1f} MB")
