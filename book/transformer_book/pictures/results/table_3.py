"""Picture of chapter 19: the paper's model, and the settings that Table 3 changes, as dials."""

from dataclasses import dataclass
from typing import Any

from transformer.model.config import TABLE_3, TransformerConfig
from transformer_book.drawing import Drawing, Number, Picture

_COLOURS = {"A": "blue", "B": "green", "C": "vermilion", "D": "purple", "E": "brown"}
_PLACES = {"Attention": "AB", "Cross-att.": "AB", "Masked att.": "AB", "Feed-forward": "C"}
_LANE, _BOX, _GAP = 148, 30, 12


@dataclass(frozen=True)
class Dial:
    """A setting that rows of Table 3 change.

    Args:
        group: letter of the rows.
        name: of the setting.
        stops: its values in the rows and in the base model, in order.
        base: index of the base model's value.
    """

    group: str
    name: str
    stops: tuple[str, ...]
    base: int


def _dials() -> list[Dial]:
    """Collect the values that the rows of Table 3 give to each setting.

    Paper: Table 3
    """
    base = TransformerConfig.base()
    found = []
    for group, name, field in (
        ("A", "heads h", "num_heads"),
        ("B", "key size d_k", "d_k"),
        ("C", "layers N", "num_layers"),
        ("C", "vector size d_model", "d_model"),
        ("C", "hidden units d_ff", "d_ff"),
        ("D", "dropout", "dropout"),
    ):
        usual: Any = getattr(base, field)
        usual = base.d_model // base.num_heads if usual is None else usual
        values = sorted({usual} | {row[field] for row in TABLE_3[group] if field in row})
        found.append(Dial(group, name, tuple(f"{v:,}" for v in values), values.index(usual)))
    # Label smoothing is a setting of the training.
    found.append(Dial("D", "label smoothing", ("0.0", "0.1", "0.2"), 1))
    found.append(Dial("E", "positions", ("sinusoids", "learned"), 0))
    return found


def dials_of_table_3() -> Picture:
    """Draw the model with the places that each group of rows changes, and the dials."""

    def draw(picture: Drawing) -> None:
        if picture.narrow:
            _model(picture, 34, 0)
            _panel(picture, 0, 426, 376)
        else:
            _model(picture, 0, 10)
            _panel(picture, 336, 6, 352)

    return Picture(
        "The paper's model, an encoder beside a decoder, with letters where Table 3 changes "
        "something: A and B at the attentions, C at the feed-forward layers, the number of layers "
        "and the size of the vectors, D where dropout is applied and at the loss "
        "(label smoothing), E at the positions. Beside it eight scales with the values of the "
        "table; a filled circle marks the value of the base model.",
        draw,
        (688, 424),
        narrow=(376, 838),
    )


def _badge(picture: Drawing, x: Number, y: Number, group: str) -> None:
    picture.box(x - 10, y - 10, 20, 20, "", _COLOURS[group], edge="ground", corner=10)
    picture.text((x, y), group, "ground", 12, bold=True)


def _part(
    picture: Drawing, x: Number, y: Number, name: str, groups: str, colour: str = "ink"
) -> None:
    """Write the name of a box, and the letters of the rows that change it."""
    picture.text((x + 7, y + _BOX / 2), name, colour, 13, "start")
    for i, group in enumerate(reversed(groups)):
        _badge(picture, x + _LANE - 30 - 21 * i, y + _BOX / 2, group)


def _lane(picture: Drawing, x: Number, bottom: Number, names: tuple[str, ...], word: str) -> Number:
    """Draw a stack from bottom to top, with its input; return the middle of the upper edge."""
    middle = x + _LANE / 2
    picture.text((middle, bottom - 8), word)
    low = bottom - 24
    for name, groups in (("Embedding", ""), ("+ position", "DE")):
        picture.arrow((middle, low + (6 if groups else 8)), (middle, low), colour="ink")
        picture.box(x + 8, low - _BOX, _LANE - 16, _BOX)
        _part(picture, x + 8, low - _BOX, name, groups)
        low -= _BOX + 6
    low -= 14
    picture.arrow((middle, low + 20), (middle, low), colour="vermilion", width=3)
    height = len(names) * (_BOX + 4) + 12
    picture.box(x, low - height, _LANE, height, "", "ground", edge="rule", corner=10)
    for i, name in enumerate(names):
        top = low - 8 - _BOX - i * (_BOX + 4)
        fill = ("pale", "ink") if name.startswith("Add") else ("grey", "ground")
        picture.box(x + 8, top, _LANE - 16, _BOX, "", fill[0])
        _part(picture, x + 8, top, name, _PLACES.get(name, "D"), fill[1])
    return low - height


def _model(picture: Drawing, x: Number, y: Number) -> None:
    bottom, right = y + 410, x + _LANE + _GAP
    encoder = ("Attention", "Add & norm", "Feed-forward", "Add & norm")
    decoder = ("Masked att.", "Add & norm", "Cross-att.", "Add & norm", "Feed-forward",
               "Add & norm")  # fmt: skip
    first = _lane(picture, x, bottom, encoder, "The animal didn't …")
    second = _lane(picture, right, bottom, decoder, "Das Tier …")
    picture.text((x + _LANE / 2 - 12, first - 16), "× N layers", bold=True)
    _badge(picture, x + _LANE / 2 + 42, first - 16, "C")
    gap, cross = right - _GAP / 2, bottom - 24 - 2 * (_BOX + 6) - 14 - 8 - 2 * (_BOX + 4) - _BOX / 2
    top = first + 12
    picture.arrow((x + _LANE, top), (gap, top), (gap, cross), (right + 8, cross), colour="ink",
                  width=2)  # fmt: skip
    box = picture.box(right + 8, second - 14 - _BOX, _LANE - 16, _BOX)
    _part(picture, box.x, box.y, "Softmax, loss", "D")
    picture.arrow((box.bottom[0], second), box.bottom, colour="vermilion", width=3)
    picture.text((x + 2, first - 52), "thick arrows: d_model", "vermilion", 13, "start")
    _badge(picture, x + _LANE - 8, first - 52, "C")


def _panel(picture: Drawing, x: Number, y: Number, width: Number) -> None:
    picture.text((x + width, y + 8), "filled: base model", "soft", 13, "end")
    for number, dial in enumerate(_dials()):
        top, colour = y + 40 + 48 * number, _COLOURS[dial.group]
        _badge(picture, x + 10, top, dial.group)
        picture.text((x + 26, top), dial.name, "ink", 13, "start")
        left, right = x + 170, x + width - 28
        if dial.name == "positions":
            left, right = x + 186, x + width - 34
        step = (right - left) / (len(dial.stops) - 1)
        picture.arrow((left, top - 4), (right, top - 4), colour="rule", width=2, tip=False)
        for i, stop in enumerate(dial.stops):
            at, chosen = left + step * i, i == dial.base
            size = 18 if chosen else 10
            picture.box(at - size / 2, top - 4 - size / 2, size, size, "",
                        colour if chosen else "ground", edge=colour, corner=size / 2)  # fmt: skip
            picture.text((at, top + 16), stop, colour if chosen else "ink", 13, bold=chosen)
