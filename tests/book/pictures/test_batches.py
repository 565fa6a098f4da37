"""The picture of chapter 13 has the rows of real batches, and counts their padding."""

import re

import numpy as np
import pytest

from transformer.data.batching import TokenBatches, encode_pairs, padding_waste
from transformer.data.corpora import Split
from transformer.data.tokenizer import Tokenizer
from transformer_book.pictures.recipe import batches


def test_padding_is_that_of_the_packages_batches():
    texts = [text for text, _ in batches.eight_sentences()]
    pairs = encode_pairs(Tokenizer.from_pretrained("tatoeba-en-de"), Split(texts, texts))
    made = TokenBatches(pairs, 1000)
    for order in batches.orders().values():
        parts = [made.batch(np.array(order[start : start + 4])) for start in (0, 4)]
        empty, area = batches.padding(order)
        assert area == sum(batch.labels.numel() for batch in parts)
        assert empty / area == pytest.approx(padding_waste(parts))


def test_every_position_is_a_cell_of_its_kind():
    svg = batches.two_orders().drawn[0].svg()
    count = {
        name: len(re.findall(rf'<rect[^>]*style="fill: var\(--{name}', svg))
        for name in ("key", "value")
    }
    real = sum(length for _, length in batches.eight_sentences())
    assert count == {"key": 2 * (real - 8), "value": 2 * 8}
    cells = len(re.findall(r"<rect", svg))
    assert cells == sum(batches.padding(order)[1] for order in batches.orders().values())
