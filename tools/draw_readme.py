"""Draws the README's picture from the shipped weights and their recorded run."""

from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.colors import LinearSegmentedColormap

from transformer.book.figures import COLOURS, figure, setup
from transformer.inference.translator import Translator
from transformer.lab.table_2.recorded import recorded_runs

SENTENCE = "The children are playing in the garden because the weather is good today."
PICTURE = Path(__file__).parents[1] / "book" / "_static" / "readme.png"


def main() -> None:
    """Translate one sentence, show where the decoder looked, and how the model got there."""
    setup()
    translator = Translator.from_pretrained("tatoeba-en-de")
    maps = translator.attention(SENTENCE)
    curve = recorded_runs()["tatoeba-small-seed1"]["curve"]

    fig, (left, right) = figure(1, 2, height=4.4, width=11, width_ratios=(1.15, 1))
    blues = LinearSegmentedColormap.from_list("blues", ["white", COLOURS["blue"]])
    weights = maps.cross[-1].mean(axis=0)  # (T, S): the heads of the last layer
    left.imshow(weights, cmap=blues, aspect="auto", vmin=0)
    left.set_xticks(range(weights.shape[1]), maps.source_tokens, rotation=45, ha="right")
    # Each row is the step that writes the token of its label.
    left.set_yticks(range(weights.shape[0]), maps.predicted_tokens)
    left.grid(False)
    left.set_title("Where the decoder looks for each German token")

    scores = [(line["step"], line["bleu"]) for line in curve if "bleu" in line]
    right.plot(*zip(*scores, strict=True), marker="o", markersize=4)
    right.set(xlabel="training step", ylabel="BLEU, greedy", ylim=(0, None))
    right.set_title("BLEU on validation sentences, one CPU core")
    fig.savefig(PICTURE, dpi=130)
    plt.close(fig)


if __name__ == "__main__":
    main()
