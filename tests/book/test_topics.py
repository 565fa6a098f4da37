"""The map of topics: each has a chapter, each link a heading, and no note has lost a topic."""

import json
import re

import make_topics
import pytest

from transformer.book.anchors import anchors, headings, slug
from transformer.book.topic_list import NOTES, Topic
from transformer.book.topics import render_topics, resolve

ROOT = make_topics.ROOT
TOPICS = [topic for topics in NOTES.values() for topic in topics]
# Rows of the list that was made when the notes were read: a topic may be split, not dropped.
ROWS = {
    "Study notes": 16,
    "Lecture slides": 12,
    "A post on intuition": 15,
    "A company's blog": 18,
    "Notes on an illustrated guide": 24,
}


def test_the_page_is_what_the_list_says():
    """It fails after a heading has changed, until somebody calls: python tools/make_topics.py."""
    assert make_topics.PAGE.read_text(encoding="utf-8") == render_topics(ROOT)


def test_no_note_has_lost_a_topic():
    assert NOTES.keys() == ROWS.keys()
    for note, topics in NOTES.items():
        assert len(topics) >= ROWS[note], note
        assert len({topic.text for topic in topics}) == len(topics), note


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.text[:40])
def test_each_topic_has_a_place_that_exists(topic):
    assert topic.places
    for place in topic.places:
        path, anchor = resolve(place, ROOT)
        assert path.is_file(), f"there is no {path.name}"
        assert not anchor or anchor in anchors(path), f"no heading {anchor!r} in {path.name}"


def test_a_topic_without_a_chapter_is_refused():
    with pytest.raises(ValueError, match="no chapter treats the topic 'why'"):
        render_topics(ROOT, {"A note": [Topic("why", "answered", ())]})


def test_what_is_put_right_is_put_right_where_errors_are_collected_or_explained():
    wrong = [topic for topic in TOPICS if topic.state == "put right"]
    collected = [topic for topic in wrong if any("24_myths" in place for place in topic.places)]
    assert len(wrong) >= 12 and len(collected) >= 10


def test_links_carry_the_heading_as_it_stands():
    page = make_topics.PAGE.read_text(encoding="utf-8")
    links = re.findall(r"\[(\d+): ([^]]+)\]\(\.\./notebooks/(\d\d)_\w+\.ipynb#([^)]+)\)", page)
    assert len(links) > 100
    for number, title, name, anchor in links:
        assert int(number) == int(name) and slug(title) == anchor


# --- anchors --------------------------------------------------------------------------------


def test_slugs_are_those_of_the_book_builder():
    myst = pytest.importorskip("myst_parser.mdit_to_docutils.base")
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    parser = MarkdownIt().use(dollarmath_plugin)
    titles = [title for path in (ROOT / "notebooks").glob("*.ipynb") for title in headings(path)]
    assert len(titles) > 200
    for title in titles:
        content = parser.parseInline(title)[0].children
        text = "".join(t.content for t in content if t.type in ("text", "code_inline"))
        assert slug(title) == myst.default_slugify(text), title


def test_headings_in_code_and_below_the_third_level_are_none(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One\n(here)=\n## Two, `too`\n```\n# no\n```\n#### Four\n### Three $x$ now\n")
    assert headings(page) == ["One", "Two, `too`", "Three $x$ now"]
    assert anchors(page) == {"one", "two-too", "three--now", "here"}
    notebook = tmp_path / "page.ipynb"
    cells = [dict(cell_type="markdown", source=["# A\n", "text"]),
             dict(cell_type="code", source=["# B"])]  # fmt: skip
    notebook.write_text(json.dumps(dict(cells=cells)))
    assert anchors(notebook) == {"a"}
