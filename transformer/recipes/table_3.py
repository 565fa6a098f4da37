"""The models of Table 3: what each of its lines changes against the base model."""

from typing import Any

from transformer.model.config import TransformerConfig

#: What each line changes, by the letter of its row. Rows D3 and D4 change label smoothing alone,
#: which belongs to training: their model is base.
LINES: dict[str, list[dict[str, Any]]] = {
    "A": [dict(num_heads=1), dict(num_heads=4), dict(num_heads=16), dict(num_heads=32)],
    "B": [dict(d_k=16), dict(d_k=32)],
    "C": [
        dict(num_layers=2),
        dict(num_layers=4),
        dict(num_layers=8),
        dict(d_model=256),
        dict(d_model=1024),
        dict(d_ff=1024),
        dict(d_ff=4096),
    ],
    "D": [dict(dropout=0.0), dict(dropout=0.2), {}, {}],
    "E": [dict(positions="learned")],
}


def table_3(row: str, place: int = 1, vocab_size: int = 37_000) -> TransformerConfig:
    """Return the model of a line of the table, such as the second under the letter A.

    Args:
        row: "A" to "E", "base" or "big".
        place: 1 for the first line of that letter.
        vocab_size: number of tokens V. The table's counts fit 40,960.

    Raises:
        ValueError: if the table has no such line.

    Paper: section 6.2, Table 3
    """
    if row in ("base", "big") and place == 1:
        return getattr(TransformerConfig, row)(vocab_size)
    lines = LINES.get(row, [])
    if not 1 <= place <= len(lines):
        known = ", ".join(f"{letter}1-{letter}{len(LINES[letter])}" for letter in LINES)
        raise ValueError(f"Table 3 has no line {row}{place}; it has base, big, {known}")
    return TransformerConfig.base(vocab_size, **lines[place - 1])
