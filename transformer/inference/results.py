"""What a translator returns besides text."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True)
class AttentionWeights:
    """Attention weights of one sentence pair, with the labels of both axes.

    A row is a query and sums to 1; a column is a key. Row i of ``decoder`` and ``cross`` is the
    position that reads ``target_tokens[i]`` and predicts ``predicted_tokens[i]``.

    Args:
        source_tokens: labels of the encoder's positions, "<eos>" at the end.
        target_tokens: labels of the decoder's input, "<bos>" at the start.
        predicted_tokens: labels of the next token at each position, "<eos>" at the end unless the
            translation was truncated.
        encoder: encoder self-attention, ``source_tokens`` by ``source_tokens``.
        decoder: masked decoder self-attention, ``target_tokens`` by ``target_tokens``.
        cross: encoder-decoder attention, ``target_tokens`` by ``source_tokens``.

    Paper: section 3.2.3, Figures 3 to 5
    """

    source_tokens: list[str]
    target_tokens: list[str]
    predicted_tokens: list[str]
    encoder: Float[np.ndarray, "layers H S S"]
    decoder: Float[np.ndarray, "decoder_layers H T T"]
    cross: Float[np.ndarray, "decoder_layers H T S"]


@dataclass(frozen=True)
class Translation:
    """A translation with its scores.

    For a text with several sentences (``split_sentences``), the numbers are sums over its
    sentences; use them to compare translations of the same text.

    Args:
        text: the translation.
        score: log_probability / length penalty, the number by which the search ranks.
        log_probability: natural logarithm of the model's probability of the translation.
        finished: False if a sentence reached the maximum length before its end.
        tokens: ids of its tokens, without BOS and EOS.
    """

    text: str
    score: float = 0.0
    log_probability: float = 0.0
    finished: bool = True
    tokens: list[int] = field(default_factory=list)


def joined(parts: list[Translation]) -> Translation:
    """Join the translations of the sentences of a text; probabilities multiply."""
    return Translation(
        " ".join(part.text for part in parts if part.text),
        sum((part.score for part in parts), 0.0),
        sum((part.log_probability for part in parts), 0.0),
        all(part.finished for part in parts),
        [token for part in parts for token in part.tokens],
    )
