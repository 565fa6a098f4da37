"""The printable file: pages in order, everything unfolded, figures still, links whole."""

import subprocess
import sys
import unicodedata

import pytest
from pypdf import PdfReader

from transformer.published import PAGES

# One worker prints the file for all of these tests.
pytestmark = pytest.mark.xdist_group("pdf")


@pytest.fixture(scope="module")
def pdf(html, tmp_path_factory):
    path = tmp_path_factory.mktemp("pdf") / "book.pdf"
    # In a process of its own: this one may have a browser open already.
    command = [sys.executable, "-m", "book.make", "pdf", html, path]
    command += ["--only=book/intro", "--only=notebooks/02_attention"]
    subprocess.run(command, check=True, capture_output=True)
    assert [*path.parent.iterdir()] == [path]
    return PdfReader(path)


def words_of(page):
    """The text of a sheet, without ligatures."""
    return " ".join(unicodedata.normalize("NFKC", page.extract_text()).split())


def test_pages_follow_the_table_of_contents(pdf):
    chapter, headings = pdf.outline[-1]
    assert chapter.title == "2 What is attention?"
    assert "Exercises" in [item.title for item in headings]
    for item in [chapter, *headings]:
        sheet = pdf.pages[pdf.get_destination_page_number(item)]
        assert item.title in words_of(sheet)
    assert all(abs(page.mediabox.width - 595) < 2 for page in pdf.pages)  # A4


def test_all_is_unfolded_and_what_is_for_the_screen_is_left_out(pdf):
    text = " ".join(words_of(page) for page in pdf.pages)
    assert "Solution" in text and "def is_sound" in text
    # Figures are drawings whose text is text.
    assert "Longer keys are easier to tell apart" in text
    for screen in ("pip install -q", "Show code cell", "looks most at"):
        assert screen not in text


def test_links_lead_through_the_file_or_to_the_public_book(pdf):
    notes = [note for page in pdf.pages for note in page.get("/Annots") or ()]
    actions = [note.get_object().get("/A") or {} for note in notes]
    addresses = [action["/URI"] for action in actions if "/URI" in action]
    assert not any("127.0.0.1" in each or "file:" in each for each in addresses)
    to_itself = [each for each in addresses if "notebooks/06_masks.html" in each]
    assert bool(to_itself) == (PAGES is not None)
    assert all(each.startswith(PAGES) for each in to_itself)
    chapter = pdf.get_destination_page_number(pdf.outline[-1][0])
    inside = [action["/D"][0] for action in actions if action.get("/S") == "/GoTo"]
    assert chapter in {pdf.get_page_number(each.get_object()) for each in inside}
