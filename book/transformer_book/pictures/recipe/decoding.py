"""Pictures of chapter 17: a translation written token by token, and a beam search as a tree."""

import math
from functools import cache
from typing import Any

import torch

from transformer.inference.translator import Translator
from transformer_book.drawing import Area, Drawing, Picture, Point

#: A sentence on which greedy search misses the better translation that a beam of two finds.
EXAMPLE = "The animal hasn't crossed the street because it was too dangerous."

_BEAM = 2
_FIRST, _LAST = 2, 8  # steps of the tree before the gap


class _Model:
    """The shipped translator and one source sentence."""

    def __init__(self, sentence: str) -> None:
        translator = Translator.from_pretrained("tatoeba-en-de")
        self.model: Any = translator.model.eval()
        self.tokenizer, self.config = translator.tokenizer, self.model.config
        ids = [*self.tokenizer.encode(sentence), self.config.eos_id]
        self.source = torch.tensor([ids])
        with torch.no_grad():
            self.memory = self.model.encode(self.source)

    def next(self, given: tuple[int, ...]) -> list[float]:
        """Return the log-probability of each token after ``given``."""
        target = torch.tensor([[self.config.bos_id, *given]])
        with torch.no_grad():
            logs = self.model.decode(target, self.memory, self.source)[0, -1].log_softmax(-1)
        logs[[self.config.pad_id, self.config.bos_id]] = -math.inf
        return logs.tolist()

    def name(self, token: int) -> str:
        """Return a token as it is printed."""
        return self.tokenizer.tokens([token])[0].strip("▁")


@cache
def _greedy(steps: int) -> tuple[int, list[list[tuple[str, float]]]]:
    """Return the source's length, and the three most probable tokens of each greedy step."""
    model, given = _Model(EXAMPLE), tuple[int, ...]()
    best = []
    for _ in range(steps):
        logs = model.next(given)
        tokens = sorted(range(len(logs)), key=lambda token: -logs[token])[:3]
        best.append([(model.name(token), math.exp(logs[token])) for token in tokens])
        given = (*given, tokens[0])
    return model.source.size(1), best


def word_by_word() -> Picture:
    """Draw four steps of greedy search: what enters the decoder, and which word is fed back."""
    length, steps = _greedy(4)

    def draw(picture: Drawing) -> None:
        given, decoder, found, gutter, wide = (
            (26, 112, 226, 366, 74) if picture.narrow else (150, 290, 446, 660, 90)
        )
        trunk, top, high = (8 if picture.narrow else 40), 92, 92
        lines = ("The animal hasn't crossed", "the street because it", "was too dangerous.")
        for i, line in enumerate(lines):
            picture.text((given - 24 if picture.narrow else given, 10 + 18 * i), line,
                         anchor="start")  # fmt: skip
        encoder = picture.box(found - 36 if picture.narrow else decoder + 52, 6, 78, 38,
                              "encoder", "green", "ground", bold=True)  # fmt: skip
        start = 178 if picture.narrow else given + 176
        picture.arrow((start, 25), encoder.left, colour="ink")
        cell = 4 if picture.narrow else 8
        bars = [
            picture.box(encoder.right[0] + 18 + i * (cell + 2), 8, cell, 34, "", "green", corner=1)
            for i in range(length)
        ]
        memory = Area(bars[0].x, 8, bars[-1].x + cell - bars[0].x, 34)
        picture.arrow(encoder.right, (memory.x - 2, 25), colour="ink")
        picture.text((memory.bottom[0], 54), f"{length} vectors", "soft", 12)
        picture.arrow((memory.x - 8, 25), (memory.x - 8, 66), (trunk, 66),
                      (trunk, top + high * 3 + 74), colour="green", width=2, tip=False)  # fmt: skip
        picture.text((given + wide / 2, 78), "input", "soft", 13)
        picture.text((found, 78), "next token", "soft", 13, "start")
        for number, best in enumerate(steps):
            y = top + high * number
            word = steps[number - 1][0][0] if number else "<bos>"
            fed = picture.box(given, y + 20, wide, 28, word, "blue" if number else "pale",
                              "ground" if number else "ink", bold=bool(number))  # fmt: skip
            step = picture.box(decoder, y + 16, wide + 8, 36, "decoder", "purple", "ground",
                               bold=True)  # fmt: skip
            picture.arrow(fed.right, step.left, colour="ink")
            low = step.bottom[0], y + 74
            picture.arrow((trunk, low[1]), low, step.bottom, colour="green", width=2)
            picture.arrow(step.right, (found - 6, y + 34), colour="ink")
            for place, (token, share) in enumerate(best):
                at = y + 2 + 22 * place
                pill = picture.box(found, at, 74, 20, token, "ground" if place else "blue",
                                   "ink" if place else "ground", edge="rule",
                                   bold=not place)  # fmt: skip
                percent = f"{100 * share:.0f}%" if share >= 0.005 else "<1%"
                picture.text((found + 82, at + 10), percent,
                             "soft" if place else "ink", 13, "start", not place)  # fmt: skip
                if not picture.narrow:
                    picture.box(found + 122, at + 5, max(2, 78 * share), 10, "",
                                "hidden" if place else "blue", corner=2)  # fmt: skip
                if not place:
                    chosen = pill
            if number + 1 < len(steps):
                turn, into = y + high - 6, given + wide / 2
                end_of_bar = 120 if picture.narrow else 126 + 78 * best[0][1]
                out = found + end_of_bar, chosen.right[1]
                picture.arrow(out, (gutter, out[1]), (gutter, turn), (into, turn),
                              (into, turn + 26), colour="blue", width=2)  # fmt: skip
        picture.text((given + wide / 2, top + high * 4), "…", bold=True)

    shares = ", ".join(f"{step[0][0]} ({step[0][1]:.0%})" for step in steps)
    return Picture(
        f"The encoder turns the English sentence into {length} vectors, once. They enter every "
        "step of the decoder. Each step gives probabilities for the next token; the most probable "
        f"one is fed back as the input of the next step. The first four: {shares}.",
        draw,
        (688, 476),
        narrow=(376, 476),
    )


@cache
def _beam() -> list[list[tuple[tuple[int, ...], float]]]:
    """Return what a beam search keeps at each step, the most probable first, to its first end."""
    model = _Model(EXAMPLE)
    alive: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    kept: list[list[tuple[tuple[int, ...], float]]] = []
    while not kept or kept[-1][0][0][-1] != model.config.eos_id:
        grown = [
            ((*given, token), total + log)
            for given, total in alive
            for token, log in enumerate(model.next(given))
        ]
        alive = sorted(grown, key=lambda entry: -entry[1])[:_BEAM]
        kept.append(alive)
    return kept


def beam_as_tree() -> Picture:
    """Draw a beam search with two beams: two branches that overtake one another."""
    kept, model = _beam(), _Model(EXAMPLE)
    winner, rival = kept[-1][0][0], kept[-1][1][0]
    leads = [step[0][0] == winner[: len(step[0][0])] for step in kept]
    ahead = next(step for step in range(1, len(kept) + 1) if all(leads[step - 1 :]))
    given_up = next(given for given, _ in kept[_FIRST - 1]
                    if given not in (winner[:_FIRST], rival[:_FIRST]))  # fmt: skip

    def text(given: tuple[int, ...]) -> str:
        return model.tokenizer.decode(list(given)).strip()

    def lane_of(given: tuple[int, ...]) -> int:
        if given == rival[: len(given)] and given != winner[: len(given)]:
            return 2
        return 0 if given == given_up else 1

    columns = [*range(_FIRST, _LAST + 1), len(kept)]  # steps
    final = len(columns) - 1

    def draw(picture: Drawing) -> None:
        def middle(column: int, lane: int) -> Point:
            gap = column == final
            if picture.narrow:
                return 92 + lane * 118, 46 + column * 64 + 20 * gap
            return 43 + column * 80 + 42 * gap, 22 + lane * 76

        across, last = middle(0, 0), middle(final, 1)
        labels = (
            (f"dropped at step {_FIRST + 1}", (across[0] + 50, across[1]), "start"),
            ("beam search", (last[0], last[1] - 26), "middle"),
            ("greedy search", (last[0], middle(final, 2)[1] + 40), "middle"),
        )
        for lane, (name, wide_place, anchor) in enumerate(labels):
            if picture.narrow:
                picture.text((middle(0, lane)[0], 12), name, "soft", 12)
            else:
                picture.text(wide_place, name, "soft", 12, anchor)
        picture.text((3, 12 if picture.narrow else 240), "step", "soft", 12, "start")
        for lane in (1, 2):
            x, y = middle(final, lane)
            picture.text((x + 12, y - 27) if picture.narrow else (x - 61, y - 8), "…", "soft")
        ends: dict[tuple[int, ...], Area] = {}
        for column, step in enumerate(columns):
            if picture.narrow:
                picture.text((18, middle(column, 0)[1]), str(step), "soft", 12)
            else:
                picture.text((middle(column, 0)[0], 240), str(step), "soft", 12)
            for rank, (given, log) in enumerate(kept[step - 1]):
                x, y = middle(column, lane_of(given))
                name = model.name(given[-1]) if column else text(given)
                wide = 66 if len(name) < 8 else 82
                area = Area(x - wide / 2, y - 13, wide, 26)
                before = ends[given[:_LAST]] if column == final else ends.get(given[:-1])
                if before:
                    start, end = (
                        ((before.bottom[0], before.bottom[1] + 16), area.top)
                        if picture.narrow and before.top[0] == area.top[0]
                        else (before.right, area.left)
                    )
                    picture.arrow(start, end, colour="blue" if not rank else "rule",
                                  width=3 if not rank else 1.5, tip=False)  # fmt: skip
                ended = given[-1] == model.config.eos_id
                fill = "green" if ended else "pale" if rank else "blue"
                ends[given] = picture.box(
                    area.x, area.y, area.width, area.height, name, fill,
                    "ink" if fill == "pale" else "ground", bold=not rank,
                )  # fmt: skip
                picture.text((x, area.bottom[1] + 9), f"{100 * math.exp(log):.1f}%",
                             "soft" if rank else "ink", 12, bold=not rank)  # fmt: skip

    return Picture(
        f"A beam search with two beams as a tree. At step 3 “{text(rival[:3])}” is ahead of "
        f"“{text(winner[:3])}”, and greedy search would follow it. At step {ahead} "
        f"“{text(winner[:ahead])}” is ahead, and it stays ahead to its end at step {len(kept)}. "
        f"The second beginning of step {_FIRST}, “{text(given_up)}”, is dropped at step "
        f"{_FIRST + 1}.",
        draw,
        (688, 254),
        narrow=(376, 566),
    )
