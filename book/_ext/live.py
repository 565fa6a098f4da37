"""Sphinx extension: the live page, with its scripts, its weights and a recorded run.

The weights are made from the shipped model when the pages are written; they are not part of the
repository, and the live page asks for them when the reader starts. The start page and chapters have
an input box that leads to the live page, at the level of zoom that a chapter is about.
"""

from functools import cache
from html import escape
from pathlib import Path

import yaml
from docutils import nodes
from sphinx.application import Sphinx

from transformer.inference.results import AttentionWeights
from transformer.inference.translator import Translator
from transformer_book.live import SHIPPED, Payload, make_payload
from transformer_book.pictures import SENTENCE

PAGE, START = "book/live", "book/intro"
LEVELS = ("sentence", "stack", "layer", "head", "output")
SCRIPTS = ("engine", "session", "parts", *LEVELS, "broken", "tour", "live")
#: Chapters with an input box: what it is for, and the state of the live page that it shows.
CHAPTERS: dict[str, tuple[str, str]] = {
    chapter: tuple(box)
    for chapter, box in yaml.safe_load(
        (Path(__file__).parents[1] / "live.yml").read_text(encoding="utf-8")
    ).items()
}
_RECORDED, _ATTRIBUTES = "<!-- live: recorded run -->", "<!-- live: size -->"
_ASK, _MEGABYTES = "<!-- live: ask -->", "<!-- live: megabytes -->"
_WIDTH, _ROW, _TOP, _LEFT, _RIGHT = 420, 27, 44, 130, 290


@cache
def payload() -> Payload:
    """Return the weights as the page loads them."""
    return make_payload(SHIPPED)


def size() -> int:
    """Return the number of bytes that a reader's browser loads."""
    return sum(len(text) for _, text in payload().scripts())


def draw(found: AttentionWeights) -> str:
    """Draw a translation as two columns of tokens with its cross-attention between them."""
    weights = found.cross[-1].mean(axis=0)
    sides = (found.source_tokens, _LEFT, "end"), (found.predicted_tokens, _RIGHT, "start")
    height = _TOP + _ROW * max(len(tokens) for tokens, _, _ in sides)
    parts = [
        f'<text x="{_LEFT}" y="18" text-anchor="end" class="head">English</text>',
        f'<text x="{_RIGHT}" y="18" class="head">German</text>',
    ]
    for t, row in enumerate(weights):
        for s, weight in enumerate(row):
            if weight < 0.1:
                continue
            y0, y1, middle = _TOP + s * _ROW, _TOP + t * _ROW, (_LEFT + _RIGHT) / 2
            parts.append(
                f'<path d="M{_LEFT + 8},{y0} C{middle},{y0} {middle},{y1} {_RIGHT - 8},{y1}" '
                f'stroke-width="{1 + 4 * weight:.1f}" opacity="{weight:.2f}"/>'
            )
    for tokens, x, anchor in sides:
        for i, token in enumerate(tokens):
            label = escape(token.lstrip("▁"))
            parts.append(
                f'<text x="{x}" y="{_TOP + i * _ROW + 5}" text-anchor="{anchor}">{label}</text>'
            )
    return f'<svg viewBox="0 0 {_WIDTH} {height}" aria-hidden="true">{"".join(parts)}</svg>'


@cache
def recorded_run() -> str:
    """Return a translation by the package as a picture, for readers without scripts."""
    translator = Translator.from_pretrained(SHIPPED)
    german = translator(SENTENCE)
    words = (
        f"A recorded run of the package: “{SENTENCE}” becomes “{german}” The lines show the "
        "cross-attention of the last layer, averaged over its heads; strong lines are large "
        "weights."
    )
    picture = draw(translator.attention(SENTENCE, german))
    return (
        f'<figure class="live-recorded">{picture}<figcaption>{escape(words)}</figcaption></figure>'
    )


def ask(address: str, label: str, state: str = "") -> str:
    """Write a box for a sentence; a state is shown below it, else it leads to the live page."""
    if not state:
        start = f"location.href = '{address}#' + new URLSearchParams({{s: this.elements.s.value}})"
        shown = f"onsubmit=\"{start} + '&run=1'; return false\""
    else:
        shown = f'data-state="{escape(state)}"'
    return (
        f'<form class="live-hero" action="{address}" {shown}>'
        f'<label for="live-text">{label}:</label><div class="live-row">'
        '<input id="live-text" name="s" type="text" maxlength="1000" autocomplete="off" '
        f'spellcheck="false" value="{escape(SENTENCE)}">'
        '<button type="submit" class="live-main-button">Translate</button></div>'
        f"<p>A Transformer runs in your browser. It is loaded once, {_megabytes()}.</p></form>"
    )


def _megabytes() -> str:
    return f"{size() / 1e6:.1f} MB"


def fill(text: str) -> str:
    """Put the recorded run, the size of the weights and the input box into a page."""
    version = payload().header["checksum"]
    attributes = f'data-version="{version}" data-bytes="{size()}"'
    text = text.replace(_RECORDED, recorded_run()).replace(_ATTRIBUTES, attributes)
    box = ask("live.html", "Type an English sentence and watch a Transformer translate it")
    return text.replace(_ASK, box).replace(_MEGABYTES, _megabytes())


def _on_read(app: Sphinx, page: str, source: list[str]) -> None:
    if page in (PAGE, START):
        source[0] = fill(source[0])


def _on_document(app: Sphinx, document: nodes.document) -> None:
    """Put the input box of a chapter before its exercises."""
    if app.env.docname not in CHAPTERS:
        return
    box = nodes.raw("", ask("../book/live.html", *CHAPTERS[app.env.docname]), format="html")
    last = [each for each in document.findall(nodes.section) if "exercises" in each["ids"]][0]
    last.parent.insert(last.parent.index(last), box)


def _on_page(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    if page in (PAGE, START, *CHAPTERS):
        app.add_css_file("live/ask.css")
    if page in CHAPTERS:
        app.add_js_file("live/ask.js", loading_method="defer")
    if page == PAGE:
        app.add_css_file("live/live.css")
        for name in SCRIPTS:
            app.add_js_file(f"live/{name}.js", loading_method="defer")


def _write(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.name == "html":
        payload().write(Path(app.outdir) / "_static" / "live")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", _on_read)
    app.connect("doctree-read", _on_document)
    app.connect("html-page-context", _on_page)
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
