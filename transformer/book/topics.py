"""A map from every topic of the notes that this book started from to the chapter that treats it.

Paper: all sections
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import get_args

from transformer.book.anchors import headings, slug
from transformer.book.tables import Table
from transformer.book.topic_list import NOTES, State, Topic


def resolve(place: str, root: Path) -> tuple[Path, str]:
    """Find the file and the anchor that a topic names.

    Args:
        place: such as "05_masks#off-by-one", "05_masks", "book/notation.md".
        root: of the repository.

    Returns:
        The file, which need not exist, and the anchor, which may be empty.
    """
    name, _, anchor = place.partition("#")
    path = root / name if name.endswith(".md") else root / "notebooks" / f"{name}.ipynb"
    return path, anchor


def render_topics(root: Path, notes: Mapping[str, Sequence[Topic]] = NOTES) -> str:
    """Write the map as a page of the book.

    Args:
        root: of the repository, for the titles of chapters and headings.
        notes: the topics of each note.

    Raises:
        ValueError: if a topic has no place.

    Paper: all sections
    """
    topics = [topic for found in notes.values() for topic in found]
    counts = [sum(topic.state == state for topic in topics) for state in get_args(State)]
    parts = []
    for name, found in notes.items():
        lines = [(topic.text, topic.state, _links(topic, root)) for topic in found]
        parts.append(f"## {name}\n\n{Table(['Topic', 'Here it is', 'Where'], lines).markdown()}")
    said = dict(zip(("explained", "exact", "right", "answered"), counts, strict=True))
    return _PAGE.format(topics=len(topics), notes=len(notes), tables="\n".join(parts), **said)


def _links(topic: Topic, root: Path) -> str:
    if not topic.places:
        raise ValueError(f"no chapter treats the topic {topic.text!r}")
    return "; ".join(_link(place, root) for place in topic.places)


def _link(place: str, root: Path) -> str:
    path, anchor = resolve(place, root)
    titles = headings(path) if path.exists() else [path.stem]
    title = next((title for title in titles if slug(title) == anchor), titles[0])
    if path.suffix == ".md":
        return f"[{title}]({path.name})"
    target = f"../notebooks/{path.name}" + (f"#{anchor}" if anchor else "")
    return f"[{int(path.name[:2])}: {title}]({target})"


_PAGE = """# Every topic, and the chapter that treats it

This book started from five notes on the paper, of the kinds that a reader meets first: a student's
questions and answers, slides of a lecture, a post that builds intuition, a company's blog, and
notes taken while reading an illustrated guide. They hold most of what is asked about the
Transformer, some questions without an answer, and some of the usual errors. Here are their
{topics} topics, each with the place where the book treats it.

**How to read it.** *Explained*: the note is right, and the chapter shows it ({explained} topics).
*Made exact*: nearly right, or right under a condition ({exact}). *Put right*: the paper or an
experiment says otherwise ({right}). *Answered*: the note asks and does not say ({answered}).

{tables}
The page is generated: `python tools/make_topics.py`.
"""
