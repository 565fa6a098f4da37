"""The picture of influences shows what each output depends on most, and where the future begins."""

import re

import torch

from transformer_book.pictures.masks import Influences


def test_influences_are_shares_of_the_largest_of_their_row():
    reads = torch.tensor([[4.0, 1.0], [0.1, 5.0]])  # 0.1 of 5 is too small to be written
    picture = Influences({"causal mask": reads}, ["<bos>", "a"], ["a", "<eos>"])
    wide, narrow = (drawing.svg() for drawing in picture.drawn)
    for svg in (wide, narrow):
        numbers = re.findall(r"<text[^>]*>([\d.]+)</text>", svg)
        assert sorted(numbers) == ["0.2", "1.0", "1.0"]
        frame = re.search(r'<rect x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)"', svg)
        left, top, width, height = map(int, frame.groups())
        right, bottom = left + width, top + height
        middle, centre = left + width // 2, top + height // 2
        stairs = f"{middle},{top} {middle},{centre} {right},{centre} {right},{bottom}"
        assert f'points="{stairs}"' in svg  # right of the diagonal
    assert "causal mask: <bos>, a" in repr(picture)
