"""Each check of the built pages finds the fault it is there for, and nothing on a sound page."""

import subprocess
import sys
from pathlib import Path

import pytest
from check_book import check

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "check_book.py"
CONTENTS = '<nav class="bd-links"><a href="index.html">Start</a><a href="two.html">Two</a></nav>'
GOOD = """
<h1 id="top">Start</h1> <p>Costs $5, see <a href="two.html#deep">two</a>, <a href="#top">up</a>,
<a href="https://example.org/page.html">elsewhere</a>.</p>
<p><code>{func}`x`</code></p> <pre>$$ :::</pre> <span class="math">$$x$$</span>
<img src="picture.png" alt="A grid."> <br> <script src="own.js"></script>
<div class="cell tag_raises-exception"><pre>Traceback (most recent call last)</pre></div>
"""


@pytest.fixture
def book(tmp_path):
    """Writes a sound book of two pages; `extra` goes onto the first."""

    def write(extra="", **files):
        (tmp_path / "index.html").write_text(CONTENTS + GOOD + extra)
        (tmp_path / "two.html").write_text(CONTENTS + '<h1 id="deep">Two</h1>')
        (tmp_path / "picture.png").write_bytes(b"")
        (tmp_path / "own.js").write_text("")
        for name, text in files.items():
            (tmp_path / name.replace("_", ".")).write_text(text)
        return tmp_path

    return write


def test_a_sound_book_has_no_problems(book):
    assert check(book()) == []


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ('<a href="gone.html">x</a>', "missing file: gone.html"),
        ('<img src="gone.png" alt="A line.">', "missing file: gone.png"),
        ('<a href="#gone">x</a>', "missing anchor: #gone"),
        ('<a href="two.html#gone">x</a>', "missing anchor: two.html#gone"),
        ('<script src="https://cdn.example.org/x.js"></script>', "<script> loads"),
        ('<script src="//cdn.example.org/x.js"></script>', "<script> loads"),
        ('<link rel="stylesheet" href="https://example.org/x.css">', "<link> loads"),
        ('<img src="http://example.org/x.png" alt="A line.">', "<img> loads"),
        ('<script>load("https://cdn.example.org/x.js")</script>', "outside load in a script"),
        ("<style>@import 'https://example.org/x.css';</style>", "outside load in a style"),
        ('<p style="background: url(https://example.org/x.png)">x</p>', "outside load"),
        ('<img src="picture.png">', "picture.png has no alt text"),
        ('<img src="picture.png" alt=" ">', "picture.png has no alt text"),
        ('<img src="picture.png" alt="../_images/picture.png">', "is a file name"),
        ("<pre>Traceback (most recent call last)</pre>", "a traceback"),
        ("<p>see {func}`x`</p>", "a role was not rendered"),
        ("<p>\n:::{note}\n</p>", "a fence was not rendered"),
        ("<p>see [x](#y)</p>", "a link was not rendered"),
        ("<p>see [x](02_attention.ipynb)</p>", "a link was not rendered"),
        ("<p>$$ x^2 $$</p>", "a formula was not rendered"),
        ('<span class="problematic">x</span>', "a message of the builder"),
    ],
)
def test_each_fault_is_found(book, fault, message):
    problems = check(book(fault))
    assert len(problems) == 1 and problems[0].startswith("index.html: ") and message in problems[0]


def test_a_page_outside_the_contents_is_found(book):
    assert check(book(lost_html="<h1>Lost</h1>")) == ["lost.html: not in the table of contents"]


def test_a_font_from_elsewhere_is_found(book):
    (problem,) = check(book(style_css="@font-face {src: url(https://example.org/x.woff2)}"))
    assert problem.startswith("style.css: loads from another site")


def test_no_book_is_a_problem(tmp_path):
    (problem,) = check(tmp_path)
    assert "does not exist" in problem


@pytest.mark.parametrize(("fault", "status"), [("", 0), ('<a href="gone.html">x</a>', 1)])
def test_the_exit_status_says_so(book, fault, status):
    command = [sys.executable, SCRIPT, book(fault)]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == status
    assert f"2 pages checked, {status} problems" in finished.stdout
