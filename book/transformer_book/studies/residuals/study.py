"""Untrained encoders of many layers, with and without residual connections and layer norms."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer.inference.translator import Translator
from transformer.model.config import TransformerConfig
from transformer.model.layers import EncoderLayer
from transformer.model.transformer import Transformer
from transformer_book.pictures import SENTENCE
from transformer_book.studies.recording import SHIPPED, Recording

RECORD = Path(__file__).parent / "record.json"
DEEPEST = 24
SEEDS = (1, 2, 3, 4, 5)

Place = Literal["none", "post", "pre"]


class Kind(NamedTuple):
    """What is around each sub-layer."""

    residual: bool
    norm: Place


#: By their names in the chapter.
KINDS = {
    "post-norm": Kind(True, "post"),
    "pre-norm": Kind(True, "pre"),
    "residual only": Kind(True, "none"),
    "post-norm, no residual": Kind(False, "post"),
    "pre-norm, no residual": Kind(False, "pre"),
    "neither": Kind(False, "none"),
}


class Wrapper(nn.Module):
    """Wrap a sub-layer in post-norm, pre-norm or no norm, with or without the residual sum."""

    def __init__(self, d_model: int, kind: Kind, alpha: float = 1.0):
        super().__init__()
        self.norm = nn.LayerNorm(d_model, eps=1e-6)
        self.kind, self.alpha = kind, alpha

    def forward(
        self, x: Float[Tensor, "B T d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "B T d_model"]:
        """Apply ``sublayer`` to ``x``, with the parts that are present."""
        y = sublayer(self.norm(x) if self.kind.norm == "pre" else x)
        if self.kind.residual:
            y = self.alpha * x + y
        return self.norm(y) if self.kind.norm == "post" else y


class Start(NamedTuple):
    """A sentence as the encoder gets it."""

    tokens: list[str]
    ids: Int[Tensor, "1 T"]
    vectors: Float[Tensor, "1 T d_model"]
    table: Float[Tensor, "V d_model"]


def start(translator: Translator | None = None, sentence: str = SENTENCE) -> Start:
    """Return a sentence's tokens, ids, embeddings with positions, and the embedding matrix."""
    translator = translator or Translator.from_pretrained(SHIPPED)
    model, tokenizer = translator.model, translator.tokenizer
    assert isinstance(model, Transformer)
    numbers = [*tokenizer.encode(sentence), tokenizer.eos_id]
    ids = torch.tensor([numbers])
    with torch.no_grad():
        vectors = model.positions(model.embedding(ids))
    tokens = [token.replace("\u2581", "") for token in tokenizer.tokens(numbers)]
    return Start(tokens, ids, vectors, model.embedding.weight.detach())


def untrained(
    kind: Kind, seed: int, layers: int = DEEPEST, alpha: float = 1.0
) -> list[EncoderLayer]:
    """Make untrained layers of the shipped width; a seed draws equal matrices for all kinds."""
    torch.manual_seed(seed)
    config = TransformerConfig(
        vocab_size=8, d_model=256, d_ff=512, num_heads=4, num_layers=layers,
        num_decoder_layers=1, dropout=0.0,
    )  # fmt: skip
    made = list(Transformer(config).encoder)
    for layer in made:
        layer.self_attention_residual = Wrapper(256, kind, alpha)  # type: ignore[assignment]
        layer.feed_forward_residual = Wrapper(256, kind, alpha)  # type: ignore[assignment]
    return made


def stream(
    layers: Iterable[EncoderLayer], x: Float[Tensor, "1 T d_model"]
) -> list[Float[Tensor, "1 T d_model"]]:
    """Return the vectors before the first layer and after each."""
    found = [x]
    for layer in layers:
        found.append(layer(found[-1]))
    return found


def size(x: Tensor) -> float:
    """Return the root of the mean square of all components."""
    return float(x.pow(2).mean().sqrt())


def likeness(x: Float[Tensor, "1 T d_model"]) -> float:
    """Return the mean cosine of the vectors of two different positions."""
    unit = F.normalize(x[0], dim=-1)
    count = len(unit)
    return float(((unit @ unit.T).sum() - count) / (count * (count - 1)))


def closest(
    x: Float[Tensor, "1 T d_model"], inputs: Float[Tensor, "1 T d_model"]
) -> Int[Tensor, "T"]:
    """Return for each position the index of the input with the largest cosine."""
    return (F.normalize(x[0], dim=-1) @ F.normalize(inputs[0], dim=-1).T).argmax(dim=-1)


def recognised(x: Float[Tensor, "1 T d_model"], inputs: Float[Tensor, "1 T d_model"]) -> float:
    """Return the share of positions whose vector is closest to their own input."""
    found = closest(x, inputs)
    return float((found == torch.arange(len(found))).float().mean())


def gradients(
    layers: Sequence[EncoderLayer], x: Float[Tensor, "1 T d_model"], start: Start, kind: Kind
) -> list[float]:
    """Measure the gradient of the loss of naming each token from the output, layer by layer."""
    if kind.norm == "pre":
        x = F.layer_norm(x, x.shape[-1:], eps=1e-6)
    loss = F.cross_entropy(x[0] @ start.table.T, start.ids[0])
    weights = [[part for part in layer.parameters() if part.ndim == 2] for layer in layers]
    flat = [part for parts in weights for part in parts]
    slopes = iter(torch.autograd.grad(loss, flat, retain_graph=True))
    return [float(np.linalg.norm([next(slopes).norm().item() for _ in ps])) for ps in weights]


class Probe(NamedTuple):
    """Measurements of one stack; index 0 of the first three is the input."""

    size: list[float]
    likeness: list[float]
    recognised: list[float]
    gradients: list[list[float]]  #: per depth, one number per layer


def probe(
    start: Start, kind: Kind, seed: int, depths: Iterable[int] = range(1, DEEPEST + 1)
) -> Probe:
    """Measure an untrained stack after each layer, and the gradients for each depth."""
    layers = untrained(kind, seed)
    with torch.enable_grad():
        states = stream(layers, start.vectors)
        slopes = [gradients(layers[:n], states[n], start, kind) for n in depths]
    states = [x.detach() for x in states]
    return Probe(
        [size(x) for x in states],
        [likeness(x) for x in states],
        [recognised(x, start.vectors) for x in states],
        slopes,
    )


def level(values: Sequence[Sequence[float]]) -> list[float]:
    """Return the geometric mean over the first axis."""
    return np.exp(np.log(np.array(values)).mean(axis=0)).tolist()


def heading() -> dict[str, Any]:
    """Return the settings in the record."""
    return dict(tokens=start().tokens, seeds=SEEDS)


def fill(recording: Recording) -> None:
    """Probe the untrained stacks that a record lacks."""
    sentence, found = start(), recording.content.setdefault("found", {})
    for name in (name for name in KINDS if name not in found):
        probes = [probe(sentence, KINDS[name], seed) for seed in SEEDS]
        entry = {
            part: [[_short(x) for x in getattr(each, part)] for each in probes]
            for part in ("size", "likeness", "recognised")
        }
        each = zip(*(one.gradients for one in probes), strict=True)
        entry["gradients"] = [[_short(x) for x in level(one)] for one in each]
        entry["first"] = [[_short(row[0]) for row in p.gradients] for p in probes]
        found[name] = entry
        recording.save(name)


def _short(number: float) -> float:
    return float(f"{number:.4g}")
