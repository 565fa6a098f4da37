"""The picture of split and merge shows what PyTorch does."""

import re

import torch

from transformer.book.pictures.heads import split_and_merge


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
