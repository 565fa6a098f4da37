"""Figure 1 of the paper, redrawn as a map of the book: each box leads to its chapter and class."""

import re
from html import unescape
from importlib import resources

from transformer_book import pictures
from transformer_book.palette import COLOURS

#: The part of the figure that a chapter is about; here.svg lists the chapters that mark a shape.
PLACES = {
    **dict.fromkeys(("01", "02", "03", "04"), "attention, in the encoder and the decoder"),
    "05": "multi-head attention",
    "06": "masked self-attention",
    "07": "positional encoding",
    "08": "the feed-forward networks",
    "09": "residual connections and layer norms",
    "10": "embeddings and the output projection",
    "11": "the whole model",
}
_MARKED = re.compile("<!--if ([0-9 ]+)-->(.*?)<!--else-->(.*?)<!--end-->", re.DOTALL)

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

    def __init__(self) -> None:
        self.svg = _read("architecture")

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        html = (
            f'<div class="themed architecture"><style>{STYLE}</style>{self.svg}'
            f"<script>{SCRIPT}</script></div>"
        )
        return {"text/html": html, "image/svg+xml": self.svg, "text/plain": repr(self)}

    def __repr__(self) -> str:
        return unescape(self.svg.partition("</desc>")[0].rpartition(">")[2])


def you_are_here(chapter: str) -> str:
    """Return Figure 1, without links, with the subject of a chapter of :data:`PLACES` marked."""
    return _MARKED.sub(lambda part: part[2 if chapter in part[1].split() else 3], _read("here"))


def _read(name: str) -> str:
    file = resources.files(pictures) / "svg" / f"{name}.svg"
    return file.read_text(encoding="utf-8").strip()
