"""The picture of heads shows what the shipped model does."""

import re

import numpy as np

from transformer_book.pictures import heads
from transformer_book.pictures.heads import where_it_looks


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
