"""Pictures of chapter 23: tensors of a layer, attention in blocks, checkpoints, number formats."""

from functools import cache

import numpy as np
import torch
from jaxtyping import Float

from transformer.inference.translator import Translator
from transformer_book.drawing import Drawing, Number, Picture
from transformer_book.pictures import SENTENCE

#: Sizes of the paper's base model.
D_MODEL, D_FF, HEADS = 512, 2048, 8
#: Lengths whose tensors are drawn.
SHORT, LONG = 256, 2048
#: Tokens in a block of keys, and of queries.
BLOCK = 5
#: The number whose bits are drawn.
NUMBER = 0.1


def tensors_to_scale() -> Picture:
    """Draw what one encoder layer stores for a short and a long sequence, on one scale."""

    def draw(picture: Drawing) -> None:
        unit = 29 if picture.narrow else 20  # numbers per pixel and side
        top: Number = 0
        for length in (SHORT, LONG):
            top = _tensors(picture, length, unit, top) + 22

    mega = [HEADS * length**2 * 4 / 1e6 for length in (SHORT, LONG)]
    return Picture(
        f"The tensors of one encoder layer as rectangles whose area is their size, for {SHORT} and "
        f"{LONG:,} tokens. The vectors become {LONG // SHORT} times as high. The eight squares of "
        f"attention weights grow in both directions, from {mega[0]:.1f} to {mega[1]:.0f} MB, and "
        "take most of the picture.",
        draw,
        (688, 378),
        narrow=(372, 448),
    )


def _tensors(picture: Drawing, length: int, unit: int, top: Number) -> Number:
    """Draw the tensors of one length; return the lower end."""
    high, thin, wide = length / unit, D_MODEL / unit, D_FF / unit
    picture.text((0, top + 10), f"{length:,} tokens", anchor="start", bold=True)
    y, x = top + 44, 0.0
    for name in ("x", "Q", "K", "V"):
        picture.box(x, y, thin, high, "", "grey" if name == "x" else "query", corner=1)
        picture.text((x + thin / 2, y - 11), name, size=13)
        x += thin + 4
    picture.box(x, y, wide, high, "", "value", corner=1)
    picture.text((x + 4, y - 11), "hidden units", size=13, anchor="start")
    linear = (4 * D_MODEL + D_FF) * length * 4 / 1e6
    picture.text((0, y + high + 14), f"{linear:.1f} MB", "soft", 13, "start")
    square = HEADS * length**2 * 4 / 1e6
    left, y2 = (0, y + high + 54) if picture.narrow else (x + wide + 26, y)
    if picture.narrow and length == SHORT:
        left, y2 = x + wide + 26, y
    across = HEADS if length == SHORT else HEADS // 2
    for head in range(HEADS):
        row, column = divmod(head, across)
        picture.box(left + (high + 4) * column, y2 + (high + 4) * row, high, high, "", "key",
                    corner=1)  # fmt: skip
    end = y2 + (high + 4) * (HEADS // across)
    picture.text((left, y2 - 11), "attention weights, 8 heads", size=13, anchor="start")
    picture.text((left, end + 10), f"{square:.1f} MB", "soft", 13, "start")
    return max(end, y + high) + 22


@cache
def _scores() -> tuple[tuple[str, ...], Float[np.ndarray, "n n"]]:
    """Return the tokens, and the scores of head 4 in the shipped model's first encoder layer."""
    translator = Translator.from_pretrained("tatoeba-en-de")
    seen = translator.attention(SENTENCE)
    words = tuple(token.strip("▁") for token in seen.source_tokens)
    weights = torch.as_tensor(np.asarray(seen.encoder[0][3]))
    # The softmax does not depend on a constant per row: the largest score becomes 0.
    scores = weights.clamp(min=1e-9).log()
    return words, (scores - scores.amax(dim=1, keepdim=True)).numpy()


def running(query: int) -> list[tuple[float, float]]:
    """Return maximum and sum of one query's exponentials after each block of keys."""
    row, found = _scores()[1][query], []
    largest, total = -np.inf, 0.0
    for start in range(0, len(row), BLOCK):
        block = row[start : start + BLOCK]
        new = max(largest, float(block.max()))
        total = total * float(np.exp(largest - new)) + float(np.exp(block - new).sum())
        largest = new
        found.append((largest, total))
    return found


def block_by_block() -> Picture:
    """Draw fused attention on the running sentence: one block of scores at a time."""
    words, scores = _scores()
    query = words.index("it")
    band = query // BLOCK
    kept = running(query)
    n = len(words)

    def draw(picture: Drawing) -> None:
        cell, count = 13, len(kept)
        for step, (largest, total) in enumerate(kept):
            x, y = (78, 30 + 262 * step) if picture.narrow else (20 + 228 * step, 30)
            picture.text((x, y - 16), f"block {step + 1} of {count}", anchor="start", bold=True)
            for row in range(0, n, BLOCK):
                for column in range(0, n, BLOCK):
                    here = row // BLOCK == band and column // BLOCK == step
                    high, wide = min(BLOCK, n - row), min(BLOCK, n - column)
                    place = x + cell * column, y + cell * row
                    done = row // BLOCK < band or (row // BLOCK == band and column // BLOCK < step)
                    picture.box(*place, cell * wide - 2, cell * high - 2, "",
                                "hidden" if done else "pale", corner=2)  # fmt: skip
                    if here:
                        values = np.exp(scores[row : row + high, column : column + wide])
                        picture.grid(*place, values, "key", (cell - 0.4, cell - 0.4), largest=1.0)
            at = y + cell * (query + 0.5)
            picture.text((x - 6, at), "it", "query", anchor="end", bold=True)
            under = y + cell * n + 14
            picture.text((x, under), f"maximum {largest:.2f}", "query", 13, "start")
            picture.text((x, under + 18), f"sum {total:.2f}", "query", 13, "start")

    return Picture(
        f"Three steps over a grid of {n} by {n} scores, cut into blocks of {BLOCK} by {BLOCK}. In "
        "each step only one block holds numbers; earlier ones are grey and empty, later ones "
        "pale. Below, what is kept of the row “it”: the largest score and the sum of exponentials, "
        + "; ".join(f"{largest:.2f} and {total:.2f}" for largest, total in kept)
        + ".",
        draw,
        (688, 30 + 13 * n + 44),
        narrow=(372, 262 * len(kept) + 6),
    )


def checkpoints() -> Picture:
    """Draw six layers: everything stored, and only each layer's input stored."""

    def draw(picture: Drawing) -> None:
        now, layers = 3, 6
        wide, step = (36, 62) if picture.narrow else (72, 114)
        for number, title in enumerate(("store everything", "store the inputs")):
            y = 118 * number
            picture.text((0, y + 10), title, anchor="start", bold=True)
            for layer in range(layers):
                x = step * layer
                gone = layer > now
                lit = layer == now if number else layer <= now
                picture.box(x, y + 40, 14, 44, "", "hidden" if gone else "value", corner=2)
                area = picture.box(
                    x + 20, y + 40, wide, 44, str(layer + 1),
                    "key" if lit else "pale", "ground" if lit else "ink",
                    edge="" if lit else "rule",
                )  # fmt: skip
                if layer < layers - 1:
                    picture.arrow(area.right, (x + step - 1, y + 62), tip=not picture.narrow)
            spot = step * now + 20 + wide / 2
            if number:
                picture.text((spot, y + 28), "computed again", "key", 13)
            end = step * (layers - 1) + 20 + wide
            picture.arrow((end, y + 98), (spot, y + 98), colour="query", width=2.5)
            picture.text((spot - 8, y + 98), "backward pass", "query", 13, "end")

    return Picture(
        "Two rows of six layers, during the backward pass, which has come to layer 4. Above, "
        "layers 1 to 4 still hold all that they computed. Below, layers 1 to 4 hold their inputs "
        "only, and layer 4 alone is filled: it is being computed again.",
        draw,
        (664, 230),
        narrow=(372, 230),
    )


def bits_of(number: float, dtype: torch.dtype) -> str:
    """Return the bits of a number in a format of 16 or 32 bits, the sign first.

    Args:
        number: any that the format holds.
        dtype: float32, float16 or bfloat16.
    """
    size = torch.finfo(dtype).bits
    whole = torch.tensor(number, dtype=dtype).view(torch.int32 if size == 32 else torch.int16)
    return f"{int(whole) % 2**size:0{size}b}"


def three_formats() -> Picture:
    """Draw the bits of one number as float32, float16 and bfloat16."""
    formats = ((torch.float32, 8), (torch.float16, 5), (torch.bfloat16, 8))

    def draw(picture: Drawing) -> None:
        cell = 11.4 if picture.narrow else 19
        for number, (dtype, exponent) in enumerate(formats):
            y = 82 * number
            name = str(dtype).removeprefix("torch.")
            value = float(torch.tensor(NUMBER, dtype=dtype))
            picture.text((0, y + 10), name, anchor="start", bold=True)
            picture.text((82, y + 10), f"{value:.8f}", "soft", 13, "start")
            bits = bits_of(NUMBER, dtype)
            for place, bit in enumerate(bits):
                part = "grey" if place == 0 else "query" if place <= exponent else "key"
                picture.box(cell * place, y + 24, cell - 1, 24, "", part, corner=2)
                picture.text((cell * (place + 0.5) - 0.5, y + 36), bit, "ground", 12)
            middle = cell * (1 + exponent / 2)
            picture.text((middle, y + 60), "exponent", "query", 12)
            picture.text((cell * (1 + exponent) + 22, y + 60), "fraction", "key", 12, "start")

    return Picture(
        f"The number {NUMBER} in three formats, bit by bit. float32: 1 sign, 8 exponent and 23 "
        "fraction bits. float16: 1, 5 and 10. bfloat16: 1, 8 and 7.",
        draw,
        (688, 238),
        narrow=(372, 238),
    )
