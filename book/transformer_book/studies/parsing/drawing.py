"""Trees of sentences as drawings."""

from matplotlib.axes import Axes

from transformer.data.corpora.treebank import Tree
from transformer_book.palette import COLOURS, INK, RULE
from transformer_book.studies.parsing.bracketing import counted_phrases, word_places


def draw_tree(axes: Axes, tree: Tree, gold: Tree | None = None) -> None:
    """Draw a tree with its words in a row below, and phrases that ``gold`` lacks in boxes."""
    gold = gold or tree
    place = word_places(gold)
    surplus = set(counted_phrases(tree, gold) - counted_phrases(gold, gold))

    def draw(node: Tree, start: int, y: int) -> tuple[float, float, int]:
        """Draw a node at height y; return its x, its height and the index of the word after it."""
        if node.word is not None:
            axes.text(start, 0, node.word, ha="right", va="top", rotation=32, color=INK,
                      rotation_mode="anchor")  # fmt: skip
            return float(start), 0.0, start + 1
        parts, end = [], start
        for child in node.children:
            child_x, child_y, end = draw(child, end, y - 1)
            parts.append((child_x, child_y))
        x = (parts[0][0] + parts[-1][0]) / 2
        for child_x, child_y in parts:
            axes.plot([x, child_x], [y, child_y + 0.1], color=RULE, linewidth=1.1, zorder=1)
        label = {"PRT": "ADVP"}.get(node.label, node.label)
        wrong, red = (label, place[start], place[end]) in surplus, COLOURS["vermilion"]
        axes.text(
            x, y, node.label, ha="center", va="center", zorder=2, color=red if wrong else INK,
            weight="bold" if wrong else "normal",
            bbox=dict(facecolor="white", edgecolor=red if wrong else "white",
                      boxstyle="round,pad=0.18", linewidth=1.4),
        )  # fmt: skip
        return x, float(y), end

    height = tree.depth()
    draw(tree, 0, height)
    axes.set(xlim=(-0.9, len(tree.leaves()) - 0.4), ylim=(-0.25, height + 0.5))
    axes.axis("off")
