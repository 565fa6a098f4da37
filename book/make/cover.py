"""Draw the cover page and the README's picture from the shipped models.

book/intro.md includes the pieces in book/_cover. A test fails when the model or the scripts of the
figures have changed since.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.ticker import MultipleLocator

from transformer.inference.translator import Translator
from transformer_book.architecture import Architecture
from transformer_book.figures import figure, setup
from transformer_book.interactive import AttentionMap
from transformer_book.palette import COLOURS
from transformer_book.pictures import SENTENCE
from transformer_book.studies.translation.recorded import recorded_runs
from transformer_book.tables import Table

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "book" / "_cover"
PICTURE = ROOT / "book" / "_static" / "readme.png"

# None is in the training text, except the first in the French one. The page says so, and which
# translations are wrong.
SENTENCES = (
    "Where is the train station?",
    "If it rains tomorrow, we will stay at home.",
    "She reads a book every evening before she goes to bed.",
    "I would have helped you if I had known that.",
    "The dog that I saw yesterday belongs to my neighbor.",
    "Attention is all you need.",
)
LOOKED_INTO = "I have never seen such a beautiful garden."
RUN = "tatoeba-small-14000-steps-seed1"


def translations(*translators: Translator) -> str:
    """Return the table of sentences and their translations into German and French."""
    found = [translator.translate(list(SENTENCES)) for translator in translators]
    return Table(["English", "German", "French"], [*zip(SENTENCES, *found, strict=True)]).markdown()


def attention_map(translator: Translator) -> AttentionMap:
    """Return the cross-attention from each German token to the English ones."""
    found = translator.attention(LOOKED_INTO, translator(LOOKED_INTO))
    layers, heads = found.cross.shape[:2]
    maps, names = [], []
    for layer in reversed(range(layers)):
        maps.append(found.cross[layer].mean(axis=0))
        names.append(f"layer {layer + 1}, mean of its heads")
        maps += [*found.cross[layer]]
        names += [f"layer {layer + 1}, head {head + 1}" for head in range(heads)]
    # Each row is labelled with the token that it predicts.
    keys, queries = _plain(found.source_tokens), _plain(found.predicted_tokens)
    alt = (
        "Cross-attention in the last layer while it writes the German sentence: Garten looks at "
        "garden, schönen at beautiful, and gesehen, at the end, at seen, far to the left."
    )
    return AttentionMap(
        np.stack(maps).round(3), queries, keys, names, alt, queries.index("gesehen")
    )


def _plain(tokens: Sequence[str]) -> list[str]:
    """Remove the mark at the start of each word."""
    return [token.lstrip("▁") for token in tokens]


def figure_1() -> str:
    """Return the clickable Figure 1, with links to chapters from the folder of the cover."""
    html = Architecture()._repr_mimebundle_()["text/html"]
    return re.sub(r'href="(\d\d_)', r'href="../notebooks/\1', html)


def pieces() -> dict[str, str]:
    """Return all pieces by file name."""
    translator = Translator.from_pretrained("tatoeba-en-de")
    return {
        "translations.txt": translations(translator, Translator.from_pretrained("tatoeba-en-fr")),
        "attention.html": attention_map(translator)._repr_mimebundle_()["text/html"],
        "figure_1.html": figure_1(),
    }


def readme_picture() -> None:
    """Draw the attention of one translation beside the learning curve of the model."""
    setup()
    maps = Translator.from_pretrained("tatoeba-en-de").attention(SENTENCE)
    record = recorded_runs()[RUN]

    fig, panels = figure(1, 2, height=4.4, width=11, width_ratios=(1.15, 1))
    left, right = np.ravel(np.asarray(panels))
    blues = LinearSegmentedColormap.from_list("blues", ["white", COLOURS["blue"]])
    weights = maps.cross[-1].mean(axis=0)  # (T, S): the heads of the last layer
    left.imshow(weights, cmap=blues, aspect="auto", vmin=0)
    left.set_xticks(range(weights.shape[1]), _plain(maps.source_tokens), rotation=45, ha="right")
    # Each row is labelled with the token that it predicts.
    left.set_yticks(range(weights.shape[0]), _plain(maps.predicted_tokens))
    left.grid(False)
    left.set_title("Where the decoder looks for each German token")

    curve = [line for line in record["curve"] if "bleu" in line]
    steps, scores = [line["step"] for line in curve], [line["bleu"] for line in curve]
    right.plot(steps, scores, marker="o", markersize=4, color=COLOURS["blue"])
    right.set(xlabel="training step", ylabel="BLEU, greedy", ylim=(0, None))
    right.xaxis.set_major_locator(MultipleLocator(4000))
    right.xaxis.set_major_formatter("{x:,.0f}")
    right.set_title(f"Validation BLEU, {record['minutes']:.0f} minutes on one GPU")
    fig.savefig(PICTURE, dpi=130)
    plt.close(fig)


def cover() -> None:
    """Write the pieces of the cover page and the README's picture."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pieces().items():
        (FOLDER / name).write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    readme_picture()
