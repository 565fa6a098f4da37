"""Picture of chapter 6: three masks."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from transformer.data.model_tokenizers import load_tokenizers
from transformer.model.attention import MultiHeadAttention
from transformer.model.masks import causal_mask, padding_mask
from transformer.model.transformer import Transformer
from transformer.saving.locate import locate
from transformer_book.drawing import Drawing, Number, Picture

#: A batch of two pairs, the second of which is one token shorter.
SOURCES = "The animal was too tired", "The animal was tired"
TARGETS = "Das Tier war zu müde", "Das Tier war müde"
#: The layer and head whose scores are shown, from 0.
LAYER, HEAD = 1, 1


@dataclass(frozen=True)
class MaskedAttention:
    """One attention of the shipped model over the shorter pair of the batch."""

    name: str
    rule: str  # what its mask hides
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    scores: Float[Tensor, "T S"]  # of one head, before masking
    mask: Bool[Tensor, "T S"]
    row: int  # whose numbers are shown


@cache
def three_attentions() -> tuple[MaskedAttention, MaskedAttention, MaskedAttention]:
    """Compute the scores of encoder, decoder and cross-attention in one layer and head."""
    model = Transformer.from_pretrained("tatoeba-en-de").eval()
    tokenizer, _ = load_tokenizers(locate("tatoeba-en-de").folder)
    source = _batch([[*tokenizer.encode(text), tokenizer.eos_id] for text in SOURCES])
    target = _batch([[tokenizer.bos_id, *tokenizer.encode(text)] for text in TARGETS])
    names = f"encoder.{LAYER}.self", f"decoder.{LAYER}.self", f"decoder.{LAYER}.cross"
    scores = [_scores(model, f"{name}_attention", source, target) for name in names]
    of_source, of_target = (
        tuple(token.lstrip("▁") for token in tokenizer.tokens(ids[1][: len(ids[1]) - cut].tolist()))
        for ids, cut in ((source, 0), (target, 1))  # no position reads the target's padding
    )
    T, S = len(of_target), len(of_source)
    real, tired, tier = (
        padding_mask(source)[1, 0],
        of_source.index("tired"),
        of_target.index("Tier"),
    )
    in_encoder, in_decoder, across = (
        each[:rows, :columns]
        for each, rows, columns in zip(scores, (S, T, T), (S, T, S), strict=True)
    )
    return (
        MaskedAttention("Encoder, S × S", "hides padding", of_source, of_source, in_encoder,
                        real.expand(S, S), tired),
        MaskedAttention("Decoder, T × T", "hides later positions", of_target, of_target,
                        in_decoder, causal_mask(T), tier),
        MaskedAttention("Cross-attention, T × S", "hides padding", of_target, of_source,
                        across, real.expand(T, S), tier),
    )  # fmt: skip


def _batch(rows: list[list[int]]) -> Tensor:
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True)


def _scores(model: torch.nn.Module, name: str, source: Tensor, target: Tensor) -> Tensor:
    """Return the scores of :data:`HEAD` before the mask, for the second pair: (T, S)."""
    attention, found = model.get_submodule(name), []
    assert isinstance(attention, MultiHeadAttention)

    def watch(module: torch.nn.Module, inputs: tuple[Tensor, ...]) -> None:
        x, memory = inputs[0], inputs[1] if len(inputs) > 1 else inputs[0]
        query, (key, _) = attention.project_query(x), attention.project_memory(memory)
        found.append((query @ key.mT / math.sqrt(query.size(-1)))[1, HEAD])

    hook = attention.register_forward_pre_hook(watch)
    try:
        with torch.no_grad():
            model(source, target)
    finally:
        hook.remove()
    (scores,) = found
    return scores


def three_masks() -> Picture:
    """Draw the masks of the three attentions, and one row of each: score, masked, weight."""

    def draw(picture: Drawing) -> None:
        for number, attention in enumerate(three_attentions()):
            _block(picture, attention, (302 if picture.narrow else 182) * number)

    return Picture(
        "Three masks as grids, each with the numbers of one row. In the encoder the last column, "
        "padding, is hidden. In the decoder everything right of the diagonal is hidden. From the "
        "decoder to the encoder the column of the source's padding is hidden. A hidden score "
        "becomes minus infinity, and its weight 0.",
        draw,
        (688, 530),
        narrow=(372, 896),
    )


def _block(picture: Drawing, shown: MaskedAttention, top: Number) -> None:
    """Draw a mask and, beside or below it, the numbers of its marked row."""
    cell = 20
    picture.text((0, top + 10), shown.name, anchor="start", bold=True)
    picture.text((372 if picture.narrow else 688, top + 10), shown.rule, "soft", anchor="end")
    x, y = 66, top + 30
    for i, word in enumerate(shown.queries):
        for j, seen in enumerate(shown.mask[i].tolist()):
            picture.box(x + cell * j + 1, y + cell * i + 1, cell - 2, cell - 2, "",
                        "key" if seen else "hidden", corner=3)  # fmt: skip
        marked = i == shown.row
        colour = "query" if marked else "ink"
        picture.text((x - 8, y + cell * (i + 0.5)), word, colour, anchor="end", bold=marked)
    width = cell * len(shown.keys)
    at = y + cell * shown.row
    for edge in (at, at + cell):
        picture.arrow((x, edge), (x + width, edge), colour="query", width=2, tip=False)
    if picture.narrow:
        left, line, wide = 65, y + 164, 51
    else:
        left, line, wide = 351, y + 24, 56
        picture.arrow((x + width + 6, at + cell / 2), (left - 70, at + cell / 2), colour="query")
    scores = shown.scores[shown.row].numpy()
    seen = shown.mask[shown.row].numpy()
    weights = shown.scores[shown.row].masked_fill(~shown.mask[shown.row], -math.inf).softmax(-1)
    masked = np.where(seen, scores, np.nan)
    size = wide, 28
    picture.grid(left, line, [scores], "key", size, ["score"], shown.keys, 1, 1e9)
    picture.grid(left, line + 32, [masked], "key", size, ["masked"], (), 1, 1e9)
    for j in np.flatnonzero(~seen).tolist():
        picture.box(left + wide * j + 1, line + 33, wide - 2, 26, "−∞", "hidden", corner=0)
    picture.grid(left, line + 64, [weights.numpy()], "key", size, ["weight"], (), 2, 1.0)
