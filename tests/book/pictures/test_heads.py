"""The pictures of heads show what PyTorch does, and what the shipped model does."""

import re

import numpy as np
import torch

from transformer_book.pictures import heads
from transformer_book.pictures.heads import split_and_merge, where_it_looks


def cells(svg):
    """Numbers in the cells, in the order of drawing, and whether each is marked as wrong."""
    pattern = r'<rect[^>]*style="fill: var\(--([\w-]+)[^>]*/><text[^>]*>(\d)</text>'
    return [(int(digit), colour == "query") for colour, digit in re.findall(pattern, svg)]


def test_the_merges_are_those_of_the_tensors():
    position = torch.arange(1, 4).view(1, 3, 1).expand(1, 3, 8)
    heads = position.reshape(1, 3, 4, 2).transpose(1, 2)
    right, wrong = heads.transpose(1, 2).flatten(2), heads.reshape(1, 3, 8)
    order = [tensor.flatten().tolist() for tensor in (position, heads, right, wrong)]
    for drawing in split_and_merge().drawn:
        numbers, marked = zip(*cells(drawing.svg()), strict=True)
        assert list(numbers) == sum(order, [])
        assert list(marked[:72]) == [False] * 72
        assert list(marked[72:]) == (wrong != position).flatten().tolist()


def test_the_heads_are_those_with_most_weight(monkeypatch):
    words = ["The", "animal", "because", "it", "was", "(end)"]
    weights = np.full((4, 6), 0.1)
    for head, place in enumerate((4, 2, 5, 1)):  # after, before, the end, "animal"
        weights[head, place] = 0.5
    found = {f"1.{i + 1}": row for i, row in enumerate(weights)}
    monkeypatch.setattr(heads, "_from_it", lambda: (words, found))
    picture = where_it_looks()
    said = repr(picture)
    assert "Head 1.1: 0.50 to “was”" in said and "Head 1.2: 0.50 to “because”" in said
    assert "Head 1.3: 0.50 to “(end)”" in said and "Head 1.4, which" in said
    names = re.findall(r">head (1\.\d)<", picture.drawn[0].svg())
    assert names == ["1.1", "1.2", "1.3", "1.4"]
