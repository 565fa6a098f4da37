"""One sentence on its way through a whole model: the tensor at every step, recorded by hooks."""

import json
import string
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from torch import Tensor, nn

from transformer.model.transformer import Transformer
from transformer.recording import record_attention
from transformer_book.palette import COLOURS, GROUND, INK, ROLES, SOFT
from transformer_book.widgets.base import Explorer, read_asset

# A value is one of 63 characters: the middle one is 0, the last the largest number of the tensor.
LEVELS = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-"
TOP = 6  # tokens shown of a distribution
SOURCE, TARGET = "source", "target"


@dataclass(frozen=True)
class Step:
    """A tensor of the forward pass."""

    part: str  # "Encoder layer 1" and so on; steps of one part are neighbours
    name: str
    says: str
    side: str  # whose tokens are the rows
    values: Tensor  # (rows, columns), or weights (heads, rows, columns)
    colour: str = "blue"


@contextmanager
def _recorded(modules: dict[str, nn.Module]) -> Iterator[dict[str, Tensor]]:
    """Record the input and the output of modules, as "name.in" and "name.out"."""
    kept: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
            kept[f"{name}.in"], kept[f"{name}.out"] = inputs[0][0], output[0]

        return hook

    with ExitStack() as stack:
        for name, module in modules.items():
            stack.callback(module.register_forward_hook(keep(name)).remove)
        yield kept


@torch.no_grad()
def record_walk(
    model: Transformer, source: Int[Tensor, "_ S"], target: Int[Tensor, "_ T"]
) -> list[Step]:
    """Run a model on one pair; return the tensors on the way, in detail for the first layers."""
    if len(source) != 1 or len(target) != 1:
        raise ValueError(f"source and target must have 1 row, got {len(source)}, {len(target)}")
    if model.config.norm != "post":
        raise ValueError(f"model.config.norm must be 'post', got {model.config.norm!r}")
    encoder, decoder = ("encoder.0", model.encoder[0]), ("decoder.0", model.decoder[0])
    inside = {
        f"{stack}.{name}": module
        for stack, layer in (encoder, decoder)
        for name, module in layer.named_modules()
        if name
    }
    stacks: dict[str, nn.Module] = {f"encoder.{i}": each for i, each in enumerate(model.encoder)}
    stacks |= {f"decoder.{i}": each for i, each in enumerate(model.decoder)}
    with _recorded(inside | stacks) as kept, record_attention(model) as weights:
        states = model.decoder_states(target, model.encode(source), source)
    logits = model.logits(states)[0]
    kept |= {f"{name}.weights": each[0] for name, each in weights.items()}
    kept |= {
        "source.ids": source.T,
        "target.ids": target.T,
        "embedding": model.embedding(source)[0],
        "logits": logits,
        "probabilities": logits.softmax(dim=-1),
    }
    texts = json.loads(read_asset("tensor-walk.json"))

    def steps(part: str, side: str) -> list[Step]:
        return [Step(side=side, values=kept[each.pop("tensor")], **each) for each in texts[part]]

    shown = []
    for stack, side, layers in (
        ("encoder", SOURCE, model.encoder),
        ("decoder", TARGET, model.decoder),
    ):
        kept[f"{stack}.0.feed_forward.relu"] = kept[f"{stack}.0.feed_forward.hidden.out"].relu()
        shown += steps(stack, side)
        for i in range(1, len(layers)):
            values = kept[f"{stack}.{i}.out"]
            part = f"{stack.capitalize()} layer {i + 1}"
            shown.append(Step(part, "output", texts["layers"][stack], side, values))
        if stack == "encoder" and len(layers) > 1:
            shown[-1] = replace(shown[-1], says=f"{shown[-1].says} {texts['memory']}")
    d_model = str(model.config.d_model)
    shown += steps("output", TARGET)
    return [replace(step, says=step.says.replace("{d}", d_model)) for step in shown]


def levels(values: Float[Tensor, "rows columns"]) -> tuple[float, str]:
    """Return the largest size, and the numbers as characters: A is its negative, ``-`` itself."""
    largest = values.abs().max().item() or 1.0
    half = (len(LEVELS) - 1) // 2
    places = (values / largest * half).round().long().flatten() + half
    return largest, "".join(LEVELS[place] for place in places.tolist())


class TensorWalk(Explorer):
    """A stepper through the forward pass of one pair, with the vector of one token magnified."""

    kind = "tensor-walk"
    parts = ("stepper.js", "stepper.css")
    size = (6.9, 7.6)

    def __init__(
        self,
        steps: Sequence[Step],
        source: Sequence[str],
        target: Sequence[str],
        vocabulary: Sequence[str],
        token: int = 0,
        place: int = 0,
        step: int = 0,
        heads: int = 4,
    ):
        for name, value, end in (("token", token, len(source)), ("place", place, len(target)),
                                 ("step", step, len(steps))):  # fmt: skip
            if not 0 <= value < end:
                raise ValueError(f"{name} must be in 0..{end - 1}, got {value}")
        # The tokenizer marks the beginning of a word with U+2581.
        clean = str.maketrans({"\u2581": None})
        self.tokens = {SOURCE: [t.translate(clean) for t in source],
                       TARGET: [t.translate(clean) for t in target]}  # fmt: skip
        self.steps, self.vocabulary = list(steps), [t.translate(clean) for t in vocabulary]
        self.row = {SOURCE: token, TARGET: place}
        self.step, self.heads = step, heads
        self.alt = self._describe()

    def shape(self, step: Step) -> str:
        """Write the shape of a step's tensor."""
        sizes = step.values.shape[:1] if step.name == "token ids" else step.values.shape
        return " × ".join(f"{size:,}" for size in sizes)

    def _describe(self) -> str:
        last = self.steps[-1].values[self.row[TARGET]]
        name = self.tokens[TARGET][self.row[TARGET]]
        lines = [f"{s.part}: {s.name}, {self.shape(s)}" for s in self.steps]
        return (
            f"The tensors of a translation, step by step. {'. '.join(lines)}. After “{name}”, the "
            f"most probable token is “{self.vocabulary[int(last.argmax())]}” ({last.max():.0%})."
        )

    def _content(self, step: Step) -> dict[str, Any]:
        values = step.values
        if step.name == "token ids":
            return {"ids": values[:, 0].tolist()}
        if values.dim() == 3:
            return {"weights": (values * 1000).round().long().tolist()}
        if values.size(1) == len(self.vocabulary):
            best, ids = values.topk(TOP)
            digits = 4 if step.name == "probabilities" else 2
            return {
                "tops": [
                    [[self.vocabulary[i], round(v, digits)] for i, v in zip(*row, strict=True)]
                    for row in zip(ids.tolist(), best.tolist(), strict=True)
                ]
            }
        largest, shades = levels(values)
        return {
            "largest": round(largest, 2),
            "shades": shades,
            "first": [[round(v, 2) for v in row] for row in values[:, :3].tolist()],
            "length": [round(v, 1) for v in values.norm(dim=-1).tolist()],
        }

    def payload(self) -> dict[str, Any]:
        """Collect the tensors, and the words about them."""
        return {
            "title": "One sentence, step by step through the model",
            "levels": LEVELS,
            "heads": self.heads,
            "tokens": self.tokens,
            "row": self.row,
            "step": self.step,
            "steps": [
                {
                    "part": step.part, "name": step.name, "says": step.says, "side": step.side,
                    "colour": step.colour, "shape": self.shape(step),
                } | self._content(step)
                for step in self.steps
            ],
        }  # fmt: skip

    def draw(self, figure: Figure) -> None:
        """Draw the vector of one source token and of one target position at every step."""
        vectors = [s for s in self.steps if s.values.dim() == 2 and s.name != "token ids"
                   and s.values.size(1) != len(self.vocabulary)]  # fmt: skip
        shown = [replace(s, values=s.values[self.row[s.side]]) for s in vectors]
        figure.set_layout_engine("none")
        panels = figure.subplots(
            len(shown),
            1,
            gridspec_kw=dict(hspace=0.3, left=0.41, right=0.94, top=0.995, bottom=0.005),
        )
        for axes, step in zip(panels, shown, strict=True):
            colour = ROLES.get(step.colour) or COLOURS[step.colour]
            shades = LinearSegmentedColormap.from_list("", [COLOURS["grey"], GROUND, colour])
            largest = float(step.values.abs().max())
            axes.imshow(np.asarray(step.values)[None], cmap=shades, vmin=-largest, vmax=largest,
                        aspect="auto", interpolation="nearest")  # fmt: skip
            axes.set(xticks=[], yticks=[])
            axes.grid(False)
            look = dict(transform=axes.transAxes, va="center", fontsize=8.5)
            name = f"{step.part}: {step.name}"
            axes.text(-0.01, 0.5, name, ha="right", color=INK, **look)
            axes.text(1.01, 0.5, f"{len(step.values)}", ha="left", color=SOFT, **look)
