"""Figure 1 of the paper, redrawn as a map of the book: each box leads to its chapter and its class.

One layout is drawn twice: as SVG with links, a description and lines in the colour of the page; and
as a picture for viewers without SVG.

Paper: Figure 1
"""

import base64
import io
from dataclasses import dataclass
from html import escape
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from transformer.book.figures import STYLE as FIGURE_STYLE
from transformer.book.palette import COLOURS, INK, ROLES, on_dark

WIDTH, HEIGHT = 462, 770
LEFT, MIDDLE, RIGHT = 112, 231, 350  # of the encoder, the figure, the decoder
PAGES = "https://transformer-book.github.io/transformer-book/notebooks/"

# The colours of the paper's figure.
FILLS = dict(
    attention="#ffe2bb",
    feed_forward="#c2e8f7",
    embedding="#fce0e1",
    norm="#f2f4c1",
    linear="#dbdfef",
    softmax="#cce7cf",
)


@dataclass(frozen=True)
class Box:
    """A box of the figure: position, text and links.

    Args:
        middle: x of its middle.
        top: y of its upper edge, downwards from the top of the figure.
        kind: a name in ``FILLS``.
        title: one line, or two with a line break.
        chapter: name of the notebook.
        api: full name of the class or function.
        label: name of the class on the page, under the title.
        use: 1 to 3 for the three uses of attention, else 0.
    """

    middle: int
    top: int
    kind: str
    title: str
    chapter: str
    api: str
    label: str
    use: int = 0

    @property
    def height(self) -> int:
        """Height that fits the title and the name under it."""
        return 24 + 17 * len(self.title.split("\n"))

    width = 164


MODEL = "transformer.model."
ATTENTION = (MODEL + "attention.MultiHeadAttention", "MultiHeadAttention")
NORM = ("norm", "Add & norm", "09_depth", MODEL + "layers.Residual", "Residual")
FEED_FORWARD = (
    "feed_forward",
    "Feed-forward",
    "08_feed_forward",
    MODEL + "layers.PositionwiseFeedForward",
    "PositionwiseFeedForward",
)
EMBEDDING = ("10_embeddings", MODEL + "embedding.TokenEmbedding", "TokenEmbedding")
OUTPUT = (MODEL + "transformer.Transformer.output_weight", "output_weight")
PROBABILITY = ("transformer.inference.stepwise.next_log_probabilities", "next_log_probabilities")
POSITIONS = (MODEL + "positional.SinusoidalPositionalEncoding", "SinusoidalPositionalEncoding")

# In the order in which data flows, which is the order of the Tab key.
BOXES = (
    Box(LEFT, 690, "embedding", "Input embedding", *EMBEDDING),
    Box(LEFT, 542, "attention", "Multi-head\nattention", "06_heads", *ATTENTION, use=1),
    Box(LEFT, 488, *NORM),
    Box(LEFT, 421, *FEED_FORWARD),
    Box(LEFT, 367, *NORM),
    Box(RIGHT, 690, "embedding", "Output embedding", *EMBEDDING),
    Box(RIGHT, 542, "attention", "Masked multi-head\nattention", "05_masks", *ATTENTION, use=2),
    Box(RIGHT, 488, *NORM),
    Box(RIGHT, 404, "attention", "Multi-head\nattention", "02_attention", *ATTENTION, use=3),
    Box(RIGHT, 350, *NORM),
    Box(RIGHT, 283, *FEED_FORWARD),
    Box(RIGHT, 229, *NORM),
    Box(RIGHT, 146, "linear", "Linear", "10_embeddings", *OUTPUT),
    Box(RIGHT, 85, "softmax", "Softmax", "10_embeddings", *PROBABILITY),
)
FRAMES = ((LEFT, 352, 280), (RIGHT, 214, 418))  # middle, top, height of the two stacks
SUMS = (LEFT, RIGHT)  # the circles in which positions are added
SUM_HEIGHT = 658
LABELS = (  # x, y, anchor, size, text, role in attention
    (RIGHT, 30, "middle", 15, "Output", ""),
    (RIGHT, 48, "middle", 15, "probabilities", ""),
    (LEFT, 760, "middle", 15, "Inputs", ""),
    (RIGHT, 760, "middle", 15, "Outputs (shifted right)", ""),
    (8, 344, "start", 15, "N× encoder", ""),
    (454, 206, "end", 15, "N× decoder", ""),
    (MIDDLE + 10, 449, "middle", 14, "K", "key"),
    (MIDDLE + 26, 449, "middle", 14, "V", "value"),
    (RIGHT - 8, 477, "end", 14, "Q", "query"),
)
DESCRIPTION = (
    "Two columns, read from bottom to top. Left, the encoder: inputs, input embedding, positions "
    "added, then N layers of self-attention (1), add and norm, feed-forward, add and norm. "
    "Right, the decoder: outputs shifted right, output embedding, positions added, then N layers "
    "of masked self-attention (2), add and norm, attention to the encoder (3), add and norm, "
    "feed-forward, add and norm; then linear, softmax, output probabilities. The encoder's last "
    "output gives keys and values to attention (3) of every decoder layer; the queries come from "
    "the decoder. A line leads around each sub-layer to the add and norm above it."
)


def _lines() -> list[tuple[list[tuple[int, int]], bool]]:
    """The lines of the figure, each a list of corners, and whether it ends in an arrow."""
    lines = []
    for middle, side in ((LEFT, -1), (RIGHT, 1)):
        column = [box for box in BOXES if box.middle == middle]
        ends = [box.top for box in column]
        starts = [box.top + box.height for box in column]
        lines.append(([(middle, 746), (middle, starts[0])], True))
        lines.append(([(middle, ends[0]), (middle, SUM_HEIGHT + 11)], True))
        lines.append(([(middle, SUM_HEIGHT - 11), (middle, starts[1])], True))
        lines += [
            ([(middle, end), (middle, start)], True)
            for end, start in zip(ends[1:], starts[2:], strict=False)
        ]
        for sublayer, norm in zip(column[1:], column[2:], strict=False):
            if norm.kind == "norm":  # the residual connection, around the sub-layer
                low, high = sublayer.top + sublayer.height + 12, norm.top + norm.height // 2
                edge, far = middle + side * 82, middle + side * 94
                lines.append(([(middle, low), (far, low), (far, high), (edge, high)], True))
    lines.append(([(RIGHT, 85), (RIGHT, 56)], True))
    # From the top of the encoder to the keys and values of every decoder layer.
    corners = [(LEFT, 367), (LEFT, 324), (MIDDLE, 324), (MIDDLE, 433), (RIGHT - 82, 433)]
    lines.append((corners, True))
    for circle, word in ((LEFT + 11, MIDDLE - 88), (RIGHT - 11, MIDDLE + 88)):
        lines.append(([(word, SUM_HEIGHT), (circle, SUM_HEIGHT)], True))
    return lines


STYLE = """
.architecture{max-width:30rem;margin:auto}
.architecture svg{display:block;width:100%;height:auto;
font-family:system-ui,"DejaVu Sans",sans-serif}
.architecture svg a{text-decoration:none}
.architecture .line{fill:none;stroke:currentColor;stroke-width:1.5}
.architecture .tip,.architecture .word{fill:currentColor}
.architecture .frame{fill:#808a9424;stroke:currentColor;stroke-opacity:.4}
.architecture .box rect{stroke:#5a646d}
.architecture .box .title,.architecture .box .name{fill:#1d252c}
.architecture .name{font-family:ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;
text-decoration:underline}
.architecture .box .name{fill:#124f66}
.architecture a:hover .title,.architecture a:hover .word{text-decoration:underline}
.architecture a:focus-visible{outline:3px solid %OUTLINE%;outline-offset:2px}
""".replace("%OUTLINE%", COLOURS["vermilion"])
# Colours of query, key and value on light and on dark pages.
for _role in ("query", "key", "value"):
    STYLE += (
        f".architecture .{_role}{{fill:{ROLES[_role]};font-weight:700}}\n"
        f':is([data-theme="dark"],[data-jp-theme-light="false"]) .architecture .{_role}'
        f"{{fill:{on_dark(ROLES[_role])}}}\n"
    )
# On a page of the book links are relative, so that they work offline; elsewhere they are absolute.
SCRIPT = (
    'document.querySelector(".bd-article")||document.querySelectorAll(".architecture a")'
    f'.forEach(a=>a.setAttribute("href",new URL(a.getAttribute("href"),"{PAGES}").href))'
)


class Architecture:
    """Figure 1 as a map of the book. Write it as the last line of a cell.

    Paper: Figure 1
    """

    def _svg(self) -> str:
        parts = [
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="group" aria-labelledby="architecture-title"'
            ' aria-describedby="architecture-description">',
            '<title id="architecture-title">The Transformer, Figure 1 of the paper</title>',
            f'<desc id="architecture-description">{escape(DESCRIPTION)}</desc>',
            f'<g role="img" aria-label="Lines of the figure. {escape(DESCRIPTION)}">',
        ]
        for middle, top, height in FRAMES:
            left = middle - 106
            parts.append(
                f'<rect class="frame" x="{left}" y="{top}" width="212" height="{height}" rx="12"/>'
            )
        for points, arrow in _lines():
            path = " ".join(f"{x},{y}" for x, y in points)
            parts.append(f'<polyline class="line" points="{path}"/>')
            if arrow:
                parts.append(f'<polygon class="tip" points="{_tip(*points[-2:])}"/>')
        for x in SUMS:
            y, arm = SUM_HEIGHT, 7
            parts.append(
                f'<circle class="line" cx="{x}" cy="{y}" r="11"/>'
                f'<path class="line" d="M{x - arm} {y}h{2 * arm}M{x} {y - arm}v{2 * arm}"/>'
            )
        for x, y, anchor, size, text, role in LABELS:
            parts.append(_text(x, y, text, f"word {role}".strip(), size, anchor))
        parts += ["</g>", *map(_box, BOXES), _positions(), "</svg>"]
        return "".join(parts)

    def _png(self) -> bytes:
        """Draw the same layout as a picture."""
        with mpl.rc_context(FIGURE_STYLE):
            figure = Figure(figsize=(WIDTH / 75, HEIGHT / 75), dpi=110)
            FigureCanvasAgg(figure)
            axes = figure.add_axes((0, 0, 1, 1))
            axes.set(xlim=(0, WIDTH), ylim=(HEIGHT + 8, 0))
            axes.axis("off")
            for middle, top, height in FRAMES:
                axes.add_patch(_rectangle(middle - 106, top, 212, height, "#f3f3f4", 10))
            for points, arrow in _lines():
                axes.plot(*zip(*points, strict=True), color=INK, lw=1.2)
                if arrow:
                    start, end = points[-2:]
                    axes.annotate("", end, start, arrowprops=dict(arrowstyle="-|>", color=INK))
            for x in SUMS:
                axes.plot(x, SUM_HEIGHT, "o", ms=20, mfc="white", mec=INK)
                axes.plot(x, SUM_HEIGHT, "+", ms=13, color=INK)
            for x, y, anchor, size, text, role in LABELS:
                look: dict[str, Any] = dict(
                    ha=dict(start="left", middle="center", end="right")[anchor]
                )
                if role:
                    look |= dict(color=ROLES[role], weight="bold")
                axes.text(x, y, text, fontsize=size * 0.72, **look)
            axes.text(MIDDLE, SUM_HEIGHT + 5, "Positional encoding", ha="center", fontsize=10)
            for box in BOXES:
                left, top = box.middle - box.width / 2, box.top
                axes.add_patch(_rectangle(left, top, box.width, box.height, FILLS[box.kind], 6))
                title = box.title + (f" ({box.use})" if box.use else "")
                centre = top + box.height / 2
                axes.text(box.middle, centre, title, ha="center", va="center", fontsize=10.5)
            target = io.BytesIO()
            figure.savefig(target, format="png", metadata={"Software": None})
        return target.getvalue()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        html = (
            f'<div class="themed architecture"><style>{STYLE}</style>{self._svg()}'
            f"<script>{SCRIPT}</script></div>"
        )
        png = base64.b64encode(self._png()).decode()
        return {"text/html": html, "image/png": png, "text/plain": repr(self)}

    def __repr__(self) -> str:
        return DESCRIPTION


def _tip(before: tuple[int, int], end: tuple[int, int]) -> str:
    """The corners of an arrow's tip; every line here runs along an axis."""
    (x0, y0), (x, y) = before, end
    if x0 == x:
        back = y + (8 if y0 > y else -8)
        return f"{x},{y} {x - 4},{back} {x + 4},{back}"
    back = x + (8 if x0 > x else -8)
    return f"{x},{y} {back},{y - 4} {back},{y + 4}"


def _text(x: int, y: int, text: str, kind: str, size: int, anchor: str = "middle") -> str:
    return (
        f'<text class="{kind}" x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}">'
        f"{escape(text)}</text>"
    )


def _link(href: str, label: str, content: str) -> str:
    return f'<a href="{href}" aria-label="{escape(label)}">{content}</a>'


def _api(name: str, label: str, text: str) -> str:
    page = f"../book/api/{name.split('.')[1]}.html"  # a page for each floor of the package
    return _link(f"{page}#{name}", f"{label} in the API reference", text)


def _chapter(chapter: str, title: str, content: str) -> str:
    number = int(chapter[:2])
    return _link(f"{chapter}.html", f"{title}: chapter {number}", content)


def _box(box: Box) -> str:
    x, lines = box.middle - box.width // 2, box.title.split("\n")
    content = (
        f'<rect x="{x}" y="{box.top}" width="{box.width}" height="{box.height}" rx="7"'
        f' fill="{FILLS[box.kind]}"/>'
    )
    for number, line in enumerate(lines):
        content += _text(box.middle, box.top + 18 + 17 * number, line, "title", 15)
    if box.use:
        content += (
            f'<circle cx="{x - 3}" cy="{box.top + 3}" r="10" fill="#1d252c" stroke="#fff"/>'
            f'<text x="{x - 3}" y="{box.top + 8}" font-size="14" fill="#fff"'
            f' text-anchor="middle">{box.use}</text>'
        )
    title = " ".join(lines) + (f", use {box.use} of 3" if box.use else "")
    name = _text(box.middle, box.top + box.height - 8, box.label, "name", 11)
    return (
        f'<g class="box">{_chapter(box.chapter, title, content)}'
        f"{_api(box.api, box.label, name)}</g>"
    )


def _positions() -> str:
    title = _text(MIDDLE, SUM_HEIGHT - 2, "Positional encoding", "word", 15)
    name = _text(MIDDLE, SUM_HEIGHT + 14, POSITIONS[1], "word name", 10)
    return _chapter("07_positions", "Positional encoding", title) + _api(*POSITIONS, name)


def _rectangle(
    x: float | int, y: float | int, width: int, height: int, fill: str, corner: int
) -> FancyBboxPatch:
    return FancyBboxPatch(
        (x, y),
        width,
        height,
        boxstyle=f"round,pad=0,rounding_size={corner}",
        facecolor=fill,
        edgecolor="#5a646d",
        linewidth=0.8,
    )
