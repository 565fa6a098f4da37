"""One sentence on its way through a whole model: the tensor at every step, recorded by hooks.

Paper: section 3, Figure 1
"""

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

from transformer.model.attention import record_attention
from transformer.model.transformer import Transformer
from transformer_book.palette import COLOURS, GROUND, INK, ROLES, SOFT
from transformer_book.widgets.base import Explorer

# A value is one of 63 characters: the middle one is 0, the last the largest number of the tensor.
LEVELS = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-"
TOP = 6  # tokens shown of a distribution
SOURCE, TARGET = "source", "target"


@dataclass(frozen=True)
class Step:
    """A tensor of the forward pass.

    Args:
        part: "Source", "Encoder layer 1" and so on; steps of one part are neighbours.
        name: what has been computed.
        says: one or two sentences about it.
        side: "source" or "target", whose tokens are the rows.
        values: (rows, columns); attention weights (heads, rows, columns).
        colour: a name in the palette.
    """

    part: str
    name: str
    says: str
    side: str
    values: Tensor
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
    """Run a model once, and return the tensors on the way in the order in which they arise.

    The first layer of each stack is recorded in detail; of the other layers, only the output is.

    Args:
        model: a model with norms after the residual sums, in evaluation mode.
        source: ids of one sentence.
        target: the decoder's input.

    Raises:
        ValueError: if there are several sentences, or the model has its norms elsewhere.

    Paper: section 3, Figure 1
    """
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
    embedded = model.embedding(source)[0]
    logits = model.logits(states)[0]
    shown = _encoder_steps(source, embedded, kept, weights, len(model.encoder))
    return shown + _decoder_steps(target, kept, weights, len(model.decoder), logits)


def _encoder_steps(
    source: Tensor, embedded: Tensor, kept: dict[str, Tensor], weights: dict[str, Tensor], n: int
) -> list[Step]:
    def step(part: str, name: str, says: str, values: Tensor, colour: str = "blue") -> Step:
        return Step(part, name, says, SOURCE, values, colour)

    at, one, d = "encoder.0.self_attention", "Encoder layer 1", embedded.size(1)
    steps = [
        step("Source", "token ids", "The tokenizer has turned the sentence into whole numbers, one "
             "per token. The last one marks its end.", source.T),
        step("Source", "embedding", f"Each id selects a row of the embedding matrix: {d} numbers, "
             f"multiplied by the square root of {d}.", embedded),
        step("Source", "embedding + position", "The sinusoids of its position are added to each "
             "row. From here on, a token's vector also says where the token is.",
             kept["encoder.0.in"]),
        *(step(one, name, f"Self-attention begins with three linear maps; the {turn}. {cut}",
               kept[f"{at}.{name}_projection.out"], name)
          for name, turn, cut in (
              ("query", "first makes the queries", "Its columns are divided among the heads."),
              ("key", "second makes the keys", "Each query will be compared with them."),
              ("value", "third makes the values", "The output will be a weighted sum of them."))),
        step(one, "attention weights", "In each head, every query is compared with every key, "
             "and the softmax makes each row sum to 1. Tokens exchange information only "
             "here.", weights[at][0]),
        step(one, "weighted sums of the values", "Each head returns a weighted sum of its values; "
             "the results of all heads are concatenated.",
             kept[f"{at}.output_projection.in"], "value"),
        step(one, "output of self-attention", "One more linear map, W^O, mixes the heads.",
             kept[f"{at}.out"]),
        step(one, "add", "The residual connection adds the input of the sub-layer to its output.",
             kept["encoder.0.self_attention_residual.norm.in"]),
        step(one, "norm", "Layer norm brings each row to mean 0 and variance 1, then scales and "
             "shifts its columns by learned amounts.",
             kept["encoder.0.self_attention_residual.norm.out"]),
        step(one, "feed-forward, hidden layer", "Each row goes on its own through a linear map "
             "to more numbers and a ReLU, which sets the negative ones to 0.",
             kept["encoder.0.feed_forward.hidden.out"].relu(), "purple"),
        step(one, "feed-forward, output", "A second linear map leads back to the width of the "
             "model.",
             kept["encoder.0.feed_forward.out"]),
        step(one, "add and norm", "Residual connection and layer norm follow again. This is the "
             "output of the first layer.", kept["encoder.0.out"]),
    ]  # fmt: skip
    for i in range(1, n):
        says = "The same two sub-layers, with their own parameters."
        if i == n - 1:
            says += " The output of the last layer is the memory, which the decoder reads."
        steps.append(step(f"Encoder layer {i + 1}", "output", says, kept[f"encoder.{i}.out"]))
    return steps


def _decoder_steps(
    target: Tensor, kept: dict[str, Tensor], weights: dict[str, Tensor], n: int, logits: Tensor
) -> list[Step]:
    def step(part: str, name: str, says: str, values: Tensor, colour: str = "blue") -> Step:
        return Step(part, name, says, TARGET, values, colour)

    at, one = "decoder.0", "Decoder layer 1"
    steps = [
        step("Target so far", "token ids", "The decoder reads the translation so far, shifted "
             "right: it begins with a start symbol, and each position predicts the next token.",
             target.T),
        step("Target so far", "embedding + position", "The embedding matrix and the sinusoids are "
             "those of the source side.", kept["decoder.0.in"]),
        step(one, "masked attention weights", "The target attends to itself. The mask hides later "
             "positions: their weights are exactly 0.", weights[f"{at}.self_attention"][0]),
        step(one, "add and norm", "The weighted sums, the output projection, the residual "
             "connection and the layer norm follow as in the encoder.",
             kept[f"{at}.self_attention_residual.out"]),
        step(one, "cross-attention weights", "The queries come from the target, the keys and "
             "values from the memory. Through these weights the translation reads the source.",
             weights[f"{at}.cross_attention"][0]),
        step(one, "output of cross-attention", "This is what each target position has read "
             "from the source.", kept[f"{at}.cross_attention.out"], "value"),
        step(one, "add and norm", "It is added to the target's own vector, and the sum is "
             "normalised.", kept[f"{at}.cross_attention_residual.out"]),
        step(one, "feed-forward, hidden layer", "The network is built as in the encoder, with its "
             "own parameters.", kept[f"{at}.feed_forward.hidden.out"].relu(), "purple"),
        step(one, "add and norm", "This is the output of the first decoder layer.",
             kept[f"{at}.out"]),
    ]  # fmt: skip
    for i in range(1, n):
        says = "The same three sub-layers, with their own parameters and the same memory."
        steps.append(step(f"Decoder layer {i + 1}", "output", says, kept[f"decoder.{i}.out"]))
    return [
        *steps,
        step("Output", "logits", "A position's logit of a token is the dot product of its vector "
             "and the token's row in the embedding matrix, which is used again here.", logits),
        step("Output", "probabilities", "The softmax turns each row of logits into probabilities "
             "that sum to 1. A search, outside the model, chooses a token.",
             logits.softmax(dim=-1)),
    ]  # fmt: skip


def levels(values: Float[Tensor, "rows columns"]) -> tuple[float, str]:
    """Write numbers as characters, from A for the most negative to ``-`` for the most positive.

    Returns:
        The largest absolute number, and a character per number, row by row.
    """
    largest = values.abs().max().item() or 1.0
    half = (len(LEVELS) - 1) // 2
    places = (values / largest * half).round().long().flatten() + half
    return largest, "".join(LEVELS[place] for place in places.tolist())


class TensorWalk(Explorer):
    """A stepper through the forward pass of one sentence pair, with one token's vector magnified.

    Args:
        steps: from :func:`record_walk`.
        source: the source tokens.
        target: the tokens of the decoder's input.
        vocabulary: the name of every token id.
        token: source token that is followed at first, from 0.
        place: target position that is followed at first, from 0.
        step: step that is shown first, from 0.
        heads: number of heads, the lines of a strip.

    Raises:
        ValueError: if ``token``, ``place`` or ``step`` is out of its range.

    Paper: section 3, Figure 1
    """

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
