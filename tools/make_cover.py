"""Writes what the cover page shows: the shipped model at work, where it looks, and Figure 1.

    python tools/make_cover.py

The pieces lie in book/_cover, and book/intro.md includes them. A test fails when the model, or the
figures' scripts, have become others than the pieces say.
"""

import re
from pathlib import Path

import numpy as np

from transformer.book.architecture import Architecture
from transformer.book.interactive import AttentionMap
from transformer.book.tables import Table
from transformer.inference.translator import Translator

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "book" / "_cover"

# None of them is in the training text. The last two come out wrong, which is said on the page.
SENTENCES = (
    "Where is the train station?",
    "If it rains tomorrow, we will stay at home.",
    "She reads a book every evening before she goes to bed.",
    "I would have helped you if I had known that.",
    "The dog that I saw yesterday belongs to my neighbor.",
    "Attention is all you need.",
)
LOOKED_INTO = "I have never seen such a beautiful garden."


def translations(translator: Translator) -> str:
    """The table of sentences and what the model makes of them."""
    rows = zip(SENTENCES, translator.translate(list(SENTENCES)), strict=True)
    return Table(["You type", "It writes"], [*rows]).markdown()


def attention_map(translator: Translator) -> AttentionMap:
    """Which English word the decoder looks at while it writes each German one."""
    found = translator.attention(LOOKED_INTO, translator(LOOKED_INTO))
    layers, heads = found.cross.shape[:2]
    maps, names = [], []
    for layer in reversed(range(layers)):
        maps.append(found.cross[layer].mean(axis=0))
        names.append(f"layer {layer + 1}, mean of its heads")
        maps += [*found.cross[layer]]
        names += [f"layer {layer + 1}, head {head + 1}" for head in range(heads)]
    # Row i reads token i and writes the next one.
    keys = [token.lstrip("▁") for token in found.source_tokens]
    queries = [token.lstrip("▁") for token in [*found.target_tokens[1:], "<eos>"]]
    alt = (
        "Cross-attention in the last layer while it writes the German sentence: Garten looks at "
        "garden, schönen at beautiful, and gesehen, at the end, at seen, far to the left."
    )
    return AttentionMap(
        np.stack(maps).round(3), queries, keys, names, alt, queries.index("gesehen")
    )


def figure_1() -> str:
    """The clickable Figure 1; its links to chapters begin in the folder of the notebooks."""
    html = Architecture()._repr_mimebundle_()["text/html"]
    return re.sub(r'href="(\d\d_)', r'href="../notebooks/\1', html)


def pieces() -> dict[str, str]:
    """All pieces by the names of their files."""
    translator = Translator.from_pretrained("tatoeba-en-de")
    return {
        "translations.txt": translations(translator),
        "attention.html": attention_map(translator)._repr_mimebundle_()["text/html"],
        "figure_1.html": figure_1(),
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in pieces().items():
        (FOLDER / name).write_text(text.rstrip("\n") + "\n", encoding="utf-8")
        print(f"{name}: written, {len(text) / 1000:.0f} kB")
