"""Cross-attention as a word alignment: from tokens to words and back."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float

from transformer.data.model_tokenizers import TokenizerLike
from transformer.inference.translator import Translator
from transformer_book.studies.simple_translators import words_of
from transformer_book.studies.what_heads_learn.word_alignment import AlignedPair, WordLinks

#: The row of the decoder that represents a target word: the one that writes it, or the next.
Row = Literal["writes", "has read"]


def token_words(tokenizer: TokenizerLike, text: str) -> list[int]:
    """Return the index of each token's word: of the first of several, of the one after a blank."""
    text = " ".join(text.split())
    ids = tokenizer.encode(text)
    ends = [len(t) for t in tokenizer.decode_batch([ids[: k + 1] for k in range(len(ids))])]
    word_at, at = [], 0  # the word of each character; of a blank, the word after it
    for number, word in enumerate(words_of(text)):
        start = text.lower().index(word, at)
        word_at += [number] * (start + len(word) - at)
        at = start + len(word)
    starts = [0, *ends[:-1]]
    found = []
    for start, end in zip(starts, ends, strict=True):
        first = start + (len(text[start:end]) - len(text[start:end].lstrip()))
        found.append(word_at[min(first, len(word_at) - 1)] if word_at else 0)
    return found


def word_weights(
    weights: Float[np.ndarray, "*maps T S"],
    target_words: Sequence[int],
    source_words: Sequence[int],
    row: Row = "writes",
) -> Float[np.ndarray, "*maps target source"]:
    """Convert weights between tokens into weights between words."""
    shift = int(row == "has read")
    used = weights[..., shift : shift + len(target_words), : len(source_words)]
    rows, columns = np.array(target_words), np.array(source_words)
    join = (columns[:, None] == np.arange(columns.max() + 1)).astype(float)
    mean = (rows == np.arange(rows.max() + 1)[:, None]).astype(float)
    mean /= np.maximum(mean.sum(axis=1, keepdims=True), 1)
    return mean @ (used.astype(float) @ join)


def strongest_links(weights: Float[np.ndarray, "target source"]) -> WordLinks:
    """Link each target word to the source word with the largest weight."""
    return frozenset((int(i), j) for j, i in enumerate(weights.argmax(axis=-1)))


def cross_word_weights(
    translator: Translator, pair: AlignedPair, row: Row = "writes"
) -> Float[np.ndarray, "layers H target source"]:
    """Return the cross-attention of all layers and heads between the words of a pair."""
    maps = translator.attention(pair.source, pair.target).cross
    target = token_words(translator.target_tokenizer, pair.target)
    source = token_words(translator.tokenizer, pair.source)
    return word_weights(maps, target, source, row)


def token_links(translator: Translator, pair: AlignedPair) -> Bool[np.ndarray, "S T"]:
    """Convert the sure links between words into links between their tokens, without EOS."""
    source = token_words(translator.tokenizer, pair.source)
    target = token_words(translator.target_tokenizer, pair.target)
    return np.array([[(i, j) in pair.sure for j in target] for i in source], bool).reshape(
        len(source), len(target)
    )
