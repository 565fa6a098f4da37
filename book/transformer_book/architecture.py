"""Figure 1 of the paper, redrawn as a map of the book: each box leads to its chapter and class."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape

from transformer_book.drawing import Drawing
from transformer_book.palette import COLOURS

WIDTH, HEIGHT = 462, 770
LEFT, MIDDLE, RIGHT = 112, 231, 350  # of the encoder, the figure, the decoder

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
    """A box of the figure: position, text and links."""

    middle: int
    top: int
    kind: str  # a name in FILLS
    title: str
    chapter: str  # name of the notebook
    api: str
    label: str  # of the class, under the title
    use: int = 0  # 1 to 3 for the three uses of attention

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
POSITIONS_CHAPTER = "07_positions"
POSITIONS = (MODEL + "positional.SinusoidalPositionalEncoding", "SinusoidalPositionalEncoding")

# In the order in which data flows, which is the order of the Tab key.
BOXES = (
    Box(LEFT, 690, "embedding", "Input embedding", *EMBEDDING),
    Box(LEFT, 542, "attention", "Multi-head\nattention", "05_heads", *ATTENTION, use=1),
    Box(LEFT, 488, *NORM),
    Box(LEFT, 421, *FEED_FORWARD),
    Box(LEFT, 367, *NORM),
    Box(RIGHT, 690, "embedding", "Output embedding", *EMBEDDING),
    Box(RIGHT, 542, "attention", "Masked multi-head\nattention", "06_masks", *ATTENTION, use=2),
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


def _lines() -> list[list[tuple[int, int]]]:
    """Return the lines of the figure, each a list of corners; all end in an arrow."""
    lines: list[list[tuple[int, int]]] = []
    for middle, side in ((LEFT, -1), (RIGHT, 1)):
        column = [box for box in BOXES if box.middle == middle]
        ends = [box.top for box in column]
        starts = [box.top + box.height for box in column]
        lines.append([(middle, 746), (middle, starts[0])])
        lines.append([(middle, ends[0]), (middle, SUM_HEIGHT + 11)])
        lines.append([(middle, SUM_HEIGHT - 11), (middle, starts[1])])
        lines += [
            [(middle, end), (middle, start)]
            for end, start in zip(ends[1:], starts[2:], strict=False)
        ]
        for sublayer, norm in zip(column[1:], column[2:], strict=False):
            if norm.kind == "norm":  # the residual connection, around the sub-layer
                low, high = sublayer.top + sublayer.height + 12, norm.top + norm.height // 2
                edge, far = middle + side * 82, middle + side * 94
                lines.append([(middle, low), (far, low), (far, high), (edge, high)])
    lines.append([(RIGHT, 85), (RIGHT, 56)])
    # From the top of the encoder to the keys and values of every decoder layer.
    corners = [(LEFT, 367), (LEFT, 324), (MIDDLE, 324), (MIDDLE, 433), (RIGHT - 82, 433)]
    lines.append(corners)
    for circle, word in ((LEFT + 11, MIDDLE - 88), (RIGHT - 11, MIDDLE + 88)):
        lines.append([(word, SUM_HEIGHT), (circle, SUM_HEIGHT)])
    return lines


#: The part of the figure that a chapter is about: its name, and what of it is marked.
PLACES = {
    "01": "attention, in the encoder and the decoder",
    "02": "attention, in the encoder and the decoder",
    "03": "attention, in the encoder and the decoder",
    "04": "attention, in the encoder and the decoder",
    "05": "multi-head attention",
    "06": "masked self-attention",
    "07": "positional encoding",
    "08": "the feed-forward networks",
    "09": "residual connections and layer norms",
    "10": "embeddings and the output projection",
    "11": "the whole model",
}

STYLE = """
.architecture{max-width:30rem;margin:auto;background:var(--ground,#fff)}
.architecture svg{display:block;width:100%;height:auto}
.architecture svg a{text-decoration:none}
.architecture a:hover text,.architecture a.api text{text-decoration:underline}
.architecture a:focus-visible{outline:3px solid var(--vermilion,%OUTLINE%);outline-offset:2px}
""".replace("%OUTLINE%", COLOURS["vermilion"])
# In a notebook outside of the book there are no pages that the links could open.
SCRIPT = (
    'document.querySelector(".bd-article")||document.querySelectorAll(".architecture a")'
    '.forEach(a=>a.removeAttribute("href"))'
)


class Architecture:
    """Figure 1 as a map of the book. Write it as the last line of a cell."""

    def _svg(self) -> str:
        """Draw the map: each box is a link to its chapter, each name one to its class."""
        picture = Drawing(WIDTH, HEIGHT)
        picture.parts += [
            '<title id="architecture-title">The Transformer, Figure 1 of the paper</title>',
            f'<desc id="architecture-description">{escape(DESCRIPTION)}</desc>',
            f'<g role="img" aria-label="Lines of the figure. {escape(DESCRIPTION)}">',
        ]
        _draw_lines(picture)
        picture.parts.append("</g>")
        for box in BOXES:
            with _link(picture, *_chapter(box)):
                _draw_box(picture, box, FILLS[box.kind])
            with _link(picture, *_api(box.api, box.label), kind="api"):
                picture.text((box.middle, box.top + box.height - 12), box.label, "ink", 12.5)
        number = int(POSITIONS_CHAPTER[:2])
        with _link(picture, f"{POSITIONS_CHAPTER}.html", f"Positional encoding: chapter {number}"):
            picture.text((MIDDLE, SUM_HEIGHT - 7), "Positional encoding", size=15)
        with _link(picture, *_api(*POSITIONS), kind="api"):
            picture.text((MIDDLE, SUM_HEIGHT + 10), POSITIONS[1], "ink", 12.5)
        named = (
            '<svg role="group" aria-labelledby="architecture-title"'
            ' aria-describedby="architecture-description" '
        )
        return picture.svg().replace("<svg ", named, 1)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        html = (
            f'<div class="themed architecture"><style>{STYLE}</style>{self._svg()}'
            f"<script>{SCRIPT}</script></div>"
        )
        return {"text/html": html, "image/svg+xml": self._svg(), "text/plain": repr(self)}

    def __repr__(self) -> str:
        return DESCRIPTION


def you_are_here(chapter: str) -> str:
    """Draw Figure 1, without links, with the subject of a chapter of :data:`PLACES` marked."""
    picture = Drawing(WIDTH, HEIGHT)
    _draw_lines(picture, "vermilion" if chapter in ("07", "11") else "ground")
    for box in BOXES:
        marked = chapter == "11" or _is_subject(box, chapter)
        _draw_box(picture, box, *(("vermilion", "ground") if marked else ("pale", "ink")))
    marked = chapter in ("07", "11")
    picture.text(
        (MIDDLE, SUM_HEIGHT),
        "Positional encoding",
        "vermilion" if marked else "ink",
        15,
        bold=marked,
    )
    return picture.svg()


def _is_subject(box: Box, chapter: str) -> bool:
    """Whether a chapter is about a box."""
    if chapter in ("01", "02", "03", "04", "05"):
        return box.kind == "attention"
    return box.chapter.startswith(chapter)


def _draw_lines(picture: Drawing, sums: str = "ground") -> None:
    """Draw the frames of the stacks, the lines, the sums in this colour, and the labels."""
    for middle, top, height in FRAMES:
        picture.box(middle - 106, top, 212, height, fill="ground", edge="rule", corner=12)
    for points in _lines():
        picture.arrow(*points, colour="ink")
    for x in SUMS:
        sign = "ink" if sums == "ground" else "ground"
        picture.box(x - 11, SUM_HEIGHT - 11, 22, 22, "+", sums, sign, edge="ink", corner=11)
    for x, y, anchor, size, text, role in LABELS:
        picture.text((x, y - 5), text, role or "ink", size, anchor, bold=bool(role))


def _draw_box(picture: Drawing, box: Box, fill: str, colour: str = "ink") -> None:
    x, lines = box.middle - box.width // 2, box.title.split("\n")
    picture.box(x, box.top, box.width, box.height, fill=fill, edge="soft", corner=7)
    for number, line in enumerate(lines):
        picture.text((box.middle, box.top + 13 + 17 * number), line, colour, 15)
    if box.use:
        picture.box(x - 13, box.top - 7, 20, 20, str(box.use), "ink", "ground", corner=10)


@contextmanager
def _link(picture: Drawing, href: str, label: str, kind: str = "chapter") -> Iterator[None]:
    """Make a link of what is drawn inside."""
    picture.parts.append(f'<a class="{kind}" href="{href}" aria-label="{escape(label)}">')
    yield
    picture.parts.append("</a>")


def _api(name: str, label: str) -> tuple[str, str]:
    page = f"../book/api/{name.split('.')[1]}.html"  # a page for each floor of the package
    return f"{page}#{name}", f"{label} in the API reference"


def _chapter(box: Box) -> tuple[str, str]:
    title = box.title.replace("\n", " ") + (f", use {box.use} of 3" if box.use else "")
    return f"{box.chapter}.html", f"{title}: chapter {int(box.chapter[:2])}"
