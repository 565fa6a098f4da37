"""The picture of chapter 17: a beam of two on the running sentence, as a tree."""

import math
from functools import cache

import torch

from transformer import minimal
from transformer.data import toy
from transformer_book.drawing import Area, Drawing, Picture, Point
from transformer_book.toy_translator import trained

_SHOWN = (2, 3, 4, 5, 6, 14, 15)  # steps; both branches end in the last two

Kept = list[tuple[tuple[int, ...], float]]  # ids with their log-probability, the best first


@cache
def _steps() -> list[Kept]:
    """Return the two most probable continuations of each step; what has ended stays."""
    model, source = trained(), minimal.pad([toy.encode(toy.TIRED.english)])
    memory, steps = model.encode(source), list[Kept]()
    alive: Kept = [((), 0.0)]
    with torch.no_grad():
        while alive:
            grown: Kept = []
            for ids, total in alive:
                target = torch.tensor([[minimal.BOS, *ids]])
                best = minimal.next_token(model, target, memory, source)[0].topk(2)
                grown += [
                    ((*ids, token), total + log_p)
                    for log_p, token in zip(*(part.tolist() for part in best), strict=True)
                ]
            ended = sum(ids[-1] == minimal.EOS for step in steps for ids, _ in step)
            kept = sorted(grown, key=lambda entry: -entry[1])[: 2 - ended]
            steps.append(kept)
            alive = [entry for entry in kept if entry[0][-1] != minimal.EOS]
    return steps


def beam_as_tree() -> Picture:
    """Draw the beam: it forks at the verb, and the branch that ends later wins."""
    steps = _steps()
    winner = steps[-1][0][0]

    def draw(picture: Drawing) -> None:
        def middle(column: int, lane: int) -> Point:
            gap = 32 * (column > _SHOWN.index(6))
            if picture.narrow:
                return 110 + lane * 150, 40 + column * 56 + gap
            return 60 + column * 92 + gap, 30 + lane * 76

        ends: dict[int, Area] = {}
        for column, step in enumerate(_SHOWN):
            at, earlier = middle(column, 0), dict(ends)
            label = (22, at[1]) if picture.narrow else (at[0], 164)
            picture.text(label, str(step), "soft", 12)
            for ids, log_p in steps[step - 1][: 2 if column else 1]:
                best = ids == winner[: len(ids)]
                lane, ended = int(not best), ids[-1] == minimal.EOS
                name = toy.WORDS[ids[-1]] if column else "Das Tier"
                x, y = middle(column, lane)
                fill = "brown" if ended else "purple" if best else "pale"
                area = Area(x - 42, y - 13, 84, 26)
                before = earlier.get(lane, earlier.get(0))
                if before:
                    down = picture.narrow and before.top[0] == area.top[0]
                    ways = (
                        ((before.bottom[0], before.bottom[1] + 15), area.top)
                        if down
                        else (before.right, area.left)
                    )
                    picture.arrow(*ways, colour="purple" if best else "rule",
                                  width=3 if best else 1.5, tip=False)  # fmt: skip
                ends[lane] = picture.box(area.x, area.y, area.width, area.height, name, fill,
                                         "ink" if fill == "pale" else "ground")  # fmt: skip
                picture.text((x, area.bottom[1] + 9), f"{math.exp(log_p):.0%}",
                             "ink" if best else "soft", 12)  # fmt: skip
        for lane in (0, 1):
            x, y = middle(_SHOWN.index(6), lane)
            picture.text((x + 12, y + 34) if picture.narrow else (x + 62, y - 9), "…", "soft")
        picture.text((22, 12) if picture.narrow else (18, 164), "step", "soft", 12)

    fork = " and ".join(f"“{toy.WORDS[ids[-1]]}” ({math.exp(p):.0%})" for ids, p in steps[2])
    early, late = (
        math.exp(next(p for ids, p in steps[n - 1] if ids[-1] == minimal.EOS)) for n in (14, 15)
    )
    return Picture(
        "A beam search with two prefixes, as a tree. After “Das Tier” it follows both "
        f"{fork}. The branch with “überquerte” ends at step 14 with {early:.0%}, the branch "
        f"with “hat” at step 15 with {late:.0%}.",
        draw,
        (688, 178),
        narrow=(340, 440),
    )
