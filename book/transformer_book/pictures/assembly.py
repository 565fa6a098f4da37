"""Pictures of chapter 11: from a black box to sub-layers, and how often each stack is called.

Each function returns a :class:`~transformer_book.drawing.Picture`; a chapter shows it in one line.
"""

from transformer_book.drawing import Area, Drawing, Number, Picture

_ENGLISH = ("The animal didn't", "cross the street", "because it was", "too tired")
_GERMAN = ("Das Tier überquerte", "die Straße nicht,", "weil es", "zu müde war.")
_LAYERS = 3  # of each stack in the shipped model
_TOKENS = 13  # of the source, with the end symbol
_ENCODER = ("Self-attention", "Add & norm", "Feed-forward", "Add & norm")
_DECODER = (
    "Masked\nself-attention", "Add & norm", "Cross-attention", "Add & norm", "Feed-forward",
    "Add & norm",
)  # fmt: skip
# Greedy search with the shipped model: what the decoder reads in a call, and what it writes.
_CALLS = (
    ("1", "<bos>", "Das"),
    ("2", "<bos> Das", "Tier"),
    ("3", "<bos> Das Tier", "überqu"),
    ("4", "<bos> Das Tier überqu", "erte"),
    ("", "…", "…"),
    ("15", "<bos> Das Tier … war .", "<eos>"),
)


def zoom() -> Picture:
    """Draw the model at three magnifications: one box, two stacks, sub-layers."""

    def draw(picture: Drawing) -> None:
        if picture.narrow:
            box = _black_box(picture, 102, 0)
            whole, top = _stacks(picture, 46, 294, 280)
            layers = _sublayers(picture, 26, 680, 320)
        else:
            box = _black_box(picture, 0, 43)
            whole, top = _stacks(picture, 188, 6, 216)
            layers = _sublayers(picture, 428, 6, 258)
        _magnify(picture, box, whole)
        _magnify(picture, top, layers)

    return Picture(
        "The model at three magnifications. First, one box that turns an English sentence into a "
        "German one. Second, an encoder of three layers beside a decoder of three layers; the "
        "encoder's output goes to every decoder layer; embeddings below, linear map and softmax "
        "above. Third, the top layer of each: self-attention and feed-forward in the encoder; "
        "masked self-attention, cross-attention and feed-forward in the decoder; add and norm "
        "after each.",
        draw,
        (688, 366),
        narrow=(372, 1040),
    )


def _black_box(picture: Drawing, x: Number, y: Number) -> Area:
    """Draw two sentences with a box between them, from bottom to top."""
    middle = x + 84
    for i, line in enumerate(_GERMAN):
        picture.text((middle, y + 12 + 18 * i), line, "blue")
    box = picture.box(x + 24, y + 106, 120, 64, "Transformer", "ink", "ground", bold=True)
    for i, line in enumerate(_ENGLISH):
        picture.text((middle, y + 210 + 18 * i), line)
    picture.arrow((middle, y + 196), box.bottom, colour="ink")
    picture.arrow(box.top, (middle, y + 80), colour="ink")
    return box


def _stacks(picture: Drawing, x: Number, y: Number, width: Number) -> tuple[Area, Area]:
    """Draw both stacks from bottom to top; return the areas of the frame and of the top layers."""
    lane, step, first = (width - 38) / 2, 44, y + 116
    sides = x + 8, x + width - lane - 8
    whole = picture.box(x, y, width, 354, "", "ground", edge="rule", corner=10)
    middle = [side + lane / 2 for side in sides]
    output = picture.box(sides[1], y + 42, lane, 46, "Linear,\nsoftmax")
    picture.arrow(output.top, (middle[1], y + 28), colour="ink")
    picture.text((middle[0], y + 16), "Encoder", "green", bold=True)
    picture.text((middle[1], y + 16), "Decoder", "purple", bold=True)
    stacks = []
    for side, at, word, colour in zip(
        sides, middle, ("English", "German"), ("green", "purple"), strict=True
    ):
        layers = [
            picture.box(side, first + step * (_LAYERS - 1 - i), lane, 30, f"Layer {i + 1}",
                        colour, "ground")
            for i in range(_LAYERS)
        ]  # fmt: skip
        embedding = picture.box(side, first + step * _LAYERS, lane, 46, "Embedding,\nposition")
        picture.text((at, y + 330), word, "ink" if colour == "green" else "blue")
        picture.arrow((at, y + 318), embedding.bottom, colour="ink")
        for low, high in zip((embedding, *layers), layers, strict=False):
            picture.arrow(low.top, high.bottom, colour="ink")
        stacks.append(layers)
    picture.arrow(stacks[1][-1].top, output.bottom, colour="ink")
    start, gap = stacks[0][-1].right, x + width / 2
    for layer in stacks[1]:
        picture.arrow(start, (gap, start[1]), (gap, layer.left[1]), layer.left, colour="green",
                      width=2)  # fmt: skip
    top = stacks[0][-1]
    return whole, Area(top.x, top.y, width - 16, top.height)


def _sublayers(picture: Drawing, x: Number, y: Number, width: Number) -> Area:
    """Draw one layer of the encoder and one of the decoder, from bottom to top."""
    bottom, lane = y + 354, (width - 28) / 2
    picture.box(x, y, width, 354, "", "ground", edge="rule", corner=10)
    columns = []
    for side, names, colour, title in (
        (x + 8, _ENCODER, "green", "Encoder layer"),
        (x + width - lane - 8, _DECODER, "purple", "Decoder layer"),
    ):
        low, boxes = bottom - 28, []
        for name in names:
            height = 44 if "\n" in name else 28
            fill = ("pale", "ink") if name.startswith("Add") else (colour, "ground")
            boxes.append(picture.box(side, low - height, lane, height, name, *fill))
            low -= height + 18
        middle = side + lane / 2
        picture.arrow((middle, bottom - 8), boxes[0].bottom, colour="ink")
        for one, other in zip(boxes, boxes[1:], strict=False):
            picture.arrow(one.top, other.bottom, colour="ink")
        picture.text((middle, y + 16), title, colour, bold=True)
        columns.append(boxes)
    picture.arrow(columns[1][-1].top, (x + width - lane / 2 - 8, y + 28), colour="ink")
    (start, top), cross = columns[0][-1].top, columns[1][2].left
    gap = x + width / 2
    picture.arrow((start, top), (start, top - 18), (gap, top - 18), (gap, cross[1]), cross,
                  colour="green", width=2)  # fmt: skip
    return Area(x, y, width, 354)


def _magnify(picture: Drawing, small: Area, large: Area) -> None:
    """Draw thin lines from the corners of a part to those of its magnification."""
    if picture.narrow:
        low = small.y + small.height
        lines = (((small.x, low), (large.x, large.y)),
                 ((small.x + small.width, low), (large.x + large.width, large.y)))  # fmt: skip
    else:
        end = small.x + small.width
        lines = (((end, small.y), (large.x, large.y)),
                 ((end, small.y + small.height), (large.x, large.y + large.height)))  # fmt: skip
    for line in lines:
        picture.arrow(*line, colour="vermilion", width=1.2, tip=False)


def encode_once() -> Picture:
    """Draw the encoder called once, and the decoder once per token of the translation."""

    def draw(picture: Drawing) -> None:
        x, reads, writes = (34, 118, 314) if picture.narrow else (96, 220, 500)
        memory = _encoder(picture)
        top, trunk = 152, x - 22
        picture.text((x, top - 18), "decoder", "soft", 13, "start")
        picture.text((reads, top - 18), "reads", "soft", 13, "start")
        picture.text((writes, top - 18), "writes", "soft", 13, "start")
        for i, (number, given, written) in enumerate(_CALLS):
            y = top + 40 * i
            if number:
                box = picture.box(x, y, 70, 28, f"call {number}", "purple", "ground")
                turn = memory.bottom[1] + 22
                picture.arrow(memory.bottom, (memory.bottom[0], turn), (trunk, turn),
                              (trunk, box.left[1]), box.left, colour="green", width=2)  # fmt: skip
            picture.text((reads, y + 14), given, anchor="start")
            picture.text((writes, y + 14), written, "blue", anchor="start", bold=bool(number))

    return Picture(
        "The encoder is called once and turns the sentence into the memory, one vector per token. "
        "The decoder is called 15 times. Each call reads the memory and the translation so far, "
        "and writes one more token: Das, Tier, überqu, erte, and so on to the end symbol.",
        draw,
        (688, 388),
        narrow=(376, 388),
    )


def _encoder(picture: Drawing) -> Area:
    """Draw the sentence, the encoder and the memory from left to right; return the memory."""
    text, box, memory = (0, 152, 282) if picture.narrow else (96, 304, 500)
    for i, line in enumerate(_ENGLISH):
        picture.text((text, 24 + 18 * i), line, anchor="start")
    encoder = picture.box(box, 26, 96, 50, "Encoder,\ncalled once", "green", "ground")
    picture.arrow((text + 128, 51), encoder.left, colour="ink")
    step, bar = (7, 5) if picture.narrow else (12, 8)
    bars = [
        picture.box(memory + step * i, 28, bar, 46, "", "green", corner=2) for i in range(_TOKENS)
    ]
    picture.arrow(encoder.right, (memory - 4, 51), colour="ink")
    whole = Area(memory, 28, bars[-1].x + bar - memory, 46)
    picture.text((whole.top[0], 14), "memory", "soft", 13)
    return whole
