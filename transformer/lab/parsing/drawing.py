"""Trees of sentences as drawings."""

from matplotlib.axes import Axes

from transformer.book.palette import COLOURS, INK, RULE
from transformer.data.corpora.treebank import Tree
from transformer.lab.parsing.bracketing import PUNCTUATION, counted_phrases


def draw_tree(axes: Axes, tree: Tree, gold: Tree | None = None) -> None:
    """Draw a tree with its words in a row below, and wrong phrases in boxes.

    Args:
        axes: where to draw; frame and ticks are removed.
        tree: the tree. Tags are not drawn.
        gold: right tree over the same words; None marks nothing.

    Raises:
        ValueError: if the two have different words.
    """
    surplus: set[tuple[str, int, int]] = set()
    place = [0]  # position of each word as counted_phrases has it
    for leaf in (gold or tree).leaves():
        place.append(place[-1] + (leaf.label not in PUNCTUATION))
    if gold is not None:
        surplus = set(counted_phrases(tree, gold) - counted_phrases(gold, gold))

    def draw(node: Tree, start: int) -> tuple[float, float, int]:
        """Draw a node; return its x, its height and the index of the word after it."""
        if node.word is not None:
            axes.text(start, 0, node.word, ha="right", va="top", rotation=32, color=INK,
                      rotation_mode="anchor")  # fmt: skip
            return float(start), 0.0, start + 1
        parts, end = [], start
        for child in node.children:
            x, y, end = draw(child, end)
            parts.append((x, y))
        x = (parts[0][0] + parts[-1][0]) / 2
        y = max(height for _, height in parts) + 1
        for child_x, child_y in parts:
            axes.plot([x, child_x], [y, child_y + 0.1], color=RULE, linewidth=1.1, zorder=1)
        label = {"PRT": "ADVP"}.get(node.label, node.label)
        wrong = (label, place[start], place[end]) in surplus
        axes.text(
            x, y, node.label, ha="center", va="center", zorder=2,
            color=COLOURS["vermilion"] if wrong else INK,
            weight="bold" if wrong else "normal",
            bbox=dict(
                facecolor="white", edgecolor=COLOURS["vermilion"] if wrong else "white",
                boxstyle="round,pad=0.18", linewidth=1.4,
            ),
        )  # fmt: skip
        return x, y, end

    _, height, _ = draw(tree, 0)
    axes.set(xlim=(-0.9, len(tree.leaves()) - 0.4), ylim=(-0.25, height + 0.5))
    axes.axis("off")
