"""Training beside generating: one pass of the decoder for all positions, or one for each token."""

from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from transformer.inference.decoding import greedy_search
from transformer.inference.translator import Translator
from transformer.model.base import evaluation_mode
from transformer_book.palette import COLOURS, INK, ROLES, SOFT
from transformer_book.widgets.base import Explorer


class DecoderPasses(Explorer):
    """A stepper through the decoder's passes over one sentence, in training and in generating."""

    kind = "decoder-passes"
    parts = ("stepper.js", "stepper.css")
    size = (6.4, 4.3)

    def __init__(
        self,
        translator: Translator,
        source: str,
        reference: str,
        passes: int = 0,
        position: int = 2,
    ):
        tokenizer, target = translator.tokenizer, translator.target_tokenizer
        self.source, self.reference = source, reference
        ids = torch.tensor([[*tokenizer.encode(source), tokenizer.eos_id]])
        given = [*target.encode(reference), target.eos_id]
        with evaluation_mode(translator.model):
            (found,) = greedy_search(translator.model, ids, 30)
            written = [*found.tokens, target.eos_id]
            self.sides, losses = [], []
            for labels in (given, written):
                inputs = [target.bos_id, *labels[:-1]]
                with torch.no_grad():
                    weights = translator.model(ids, torch.tensor([inputs])).softmax(dim=-1)[0]
                best, right = weights.max(dim=-1), weights[range(len(labels)), labels]
                losses.append(-right.log().mean().item())
                self.sides.append(
                    dict(
                        reads=_labels(target, inputs),
                        predicts=_labels(target, best.indices.tolist()),
                        sure=[round(p, 2) for p in best.values.tolist()],
                        labels=_labels(target, labels),
                        right=[round(p, 2) for p in right.tolist()],
                    )
                )
        longest = max(len(side["reads"]) for side in self.sides)
        if longest > 12:
            raise ValueError(f"a translation may have 12 tokens with its end, got {longest}")
        if not 0 <= position < min(len(side["reads"]) for side in self.sides):
            raise ValueError(f"position must be one of both translations, got {position}")
        self.text = target.decode(found.tokens)
        self.loss = losses[0]
        self.passes, self.position = passes, position
        self.alt = self._describe()

    def _describe(self) -> str:
        counts = [len(side["reads"]) for side in self.sides]
        return (
            f"“{self.source}” twice. In training the decoder reads the given translation, "
            f"“{self.reference}”, shifted right, and one pass predicts all {counts[0]} tokens. "
            f"When generating, it reads its own predictions: {counts[1]} passes write “{self.text}”"
        )

    def payload(self) -> dict[str, Any]:
        """Collect what each position reads and predicts, and the first setting."""
        return {
            "title": "Training and generating, pass by pass",
            "sides": self.sides,
            "loss": round(self.loss, 2),
            "passes": self.passes,
            "position": self.position,
        }

    def draw(self, figure: Figure) -> None:
        """Draw both sides after their last pass."""
        names = "Training: 1 pass", f"Generating: {len(self.sides[1]['reads'])} passes"
        panels = figure.subplots(1, 2, width_ratios=[1.25, 1])
        for axes, side, name in zip(panels, self.sides, names, strict=True):
            axes.set_title(name)
            axes.set_axis_off()
            axes.set(xlim=(0, 3.3 if side is self.sides[0] else 2.5), ylim=(10.2, -0.8))
            heads = ["reads", "predicts", "label"][: 3 if side is self.sides[0] else 2]
            for column, head in enumerate(heads):
                axes.text(column * 1.15, -0.2, head, color=SOFT, fontsize="small")
            for row, read in enumerate(side["reads"]):
                self._draw_row(axes, side, row, read)

    def _draw_row(self, axes: Axes, side: dict[str, Any], row: int, read: str) -> None:
        y = row + 0.7
        axes.text(0, y, read, color=ROLES["key"])
        axes.text(1.15, y, side["predicts"][row], color=COLOURS["green"])
        if side is self.sides[0]:
            axes.text(2.3, y, f"{side['labels'][row]}  {side['right'][row]:.2f}", color=INK)
        elif row + 1 < len(side["reads"]):
            style = dict(arrowstyle="->", color=COLOURS["green"], lw=1)
            tip = min(max(0.62, 0.1 * len(side["reads"][row + 1])), 1.0)  # right of the word
            axes.annotate("", (tip, y + 0.85), (1.1, y + 0.1), arrowprops=style)


def _labels(tokenizer: Any, ids: list[int]) -> list[str]:
    """Return tokens as they are shown: without the mark of a word's beginning."""
    return [token.lstrip("▁") or "▁" for token in tokenizer.tokens(ids)]
