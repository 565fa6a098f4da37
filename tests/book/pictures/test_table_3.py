"""The dials of Table 3 have the values of its rows, and the base model's are filled."""

import re
from collections import Counter

from transformer.model.config import TABLE_3, TransformerConfig
from transformer_book.pictures.results.table_3 import _dials, dials_of_table_3


def test_every_row_is_a_stop():
    stops = Counter({letter: 0 for letter in TABLE_3})
    for dial in _dials():
        stops[dial.group] += len(dial.stops) - 1
    assert stops == {letter: len(rows) for letter, rows in TABLE_3.items()}


def test_the_filled_stop_is_the_base_model():
    base = TransformerConfig.base()
    usual = {dial.name.split()[-1]: dial.stops[dial.base] for dial in _dials()}
    assert usual["h"] == str(base.num_heads) and usual["N"] == str(base.num_layers)
    assert usual["d_k"] == str(base.d_model // base.num_heads)
    assert usual["d_ff"] == f"{base.d_ff:,}" and usual["dropout"] == str(base.dropout)
    for drawing in dials_of_table_3().drawn:
        bold = re.findall(r'font-weight="700"[^>]*>([^<]+)<', drawing.svg())
        assert {"8", "64", "6", "512", "2,048", "sinusoids"} <= set(bold)
        assert "learned" not in bold and "32" not in bold
