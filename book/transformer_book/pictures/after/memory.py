"""Picture of chapter 24: attention in blocks."""

from functools import cache

import numpy as np
import torch
from jaxtyping import Float

from transformer.inference.translator import Translator
from transformer_book.drawing import Drawing, Picture
from transformer_book.pictures import SENTENCE

#: Tokens in a block of keys, and of queries.
BLOCK = 5


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
