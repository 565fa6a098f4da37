"""The printable file: pages in order, everything unfolded, figures still, links whole."""

import subprocess
import sys
import unicodedata

import pytest
from pypdf import PdfReader

from transformer.published import PAGES

# One worker prints the file for all of these tests.
pytestmark = pytest.mark.xdist_group("pdf")
ONLY = ["book/intro", "notebooks/02_attention"]


@pytest.fixture(scope="module")
def pdf(html, tmp_path_factory):
    path = tmp_path_factory.mktemp("pdf") / "book.pdf"
    # In a process of its own: this one may have a browser open already.
    command = [sys.executable, "-m", "book.make", "pdf", html, path]
    command += [f"--only={name}" for name in ONLY]
    subprocess.run(command, check=True, capture_output=True)
    assert [*path.parent.iterdir()] == [path]
    return PdfReader(path)


def words_of(page):
    """The text of a sheet, without ligatures."""
    return unicodedata.normalize("NFKC", page.extract_text())


@pytest.fixture(scope="module")
def text(pdf):
    return "\n".join(words_of(page) for page in pdf.pages)


def test_pages_follow_the_table_of_contents(pdf, text):
    titles = [item.title for item in pdf.outline if not isinstance(item, list)]
    chapter, headings = pdf.outline[-1]
    assert titles[-1] == "Attention" and chapter.title == "2 What is attention?"
    assert "Exercises" in [item.title for item in headings]
    for item in [chapter, *headings]:
        sheet = pdf.pages[pdf.get_destination_page_number(item)]
        assert item.title in " ".join(words_of(sheet).split())
    assert text.index("Three ways in") < text.index("The definition, phrase by phrase")
    assert pdf.metadata.title == "Attention Is All You Need, rebuilt"
    assert all(abs(page.mediabox.width - 595) < 2 for page in pdf.pages)  # A4


def test_solutions_are_shown_and_what_is_for_the_screen_is_not(text):
    assert "def is_sound" in text and "Both sides are equal at S = e^(8 - 2)" in text
    assert "Solution" in text
    assert "pip install -q" not in text  # the cell that installs the package in Colab
    assert "from transformer_book import" not in text
    assert "Show code cell" not in text and "Hide code cell" not in text


def test_figures_are_pictures_and_not_what_a_script_has_drawn(pdf, text):
    assert "mean of its heads" not in text and "looks most at" not in text
    assert sum(len(page.images) for page in pdf.pages[:3]) >= 1
    # Figures are drawings whose text is text.
    assert "Longer keys keep more entries apart" in text and "weight of the right key" in text


def links(pdf):
    for page in pdf.pages:
        for annotation in page.get("/Annots") or ():
            yield annotation.get_object().get("/A") or {}


def test_links_lead_through_the_file_or_to_the_public_book(pdf):
    addresses = [action["/URI"] for action in links(pdf) if "/URI" in action]
    assert addresses and not any(
        "127.0.0.1" in address or "file:" in address for address in addresses
    )
    to_itself = [address for address in addresses if "notebooks/06_masks.html" in address]
    assert all(PAGES and address.startswith(PAGES) for address in to_itself)
    assert bool(to_itself) == (PAGES is not None)
    inside = [
        action["/D"][0] for action in links(pdf) if action.get("/S") == "/GoTo" and "/D" in action
    ]
    chapter = pdf.get_destination_page_number(pdf.outline[-1][0])
    places = {
        pdf.get_page_number(target.get_object()) for target in inside if hasattr(target, "idnum")
    }
    assert chapter in places
