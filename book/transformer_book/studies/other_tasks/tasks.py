"""Four tasks on real data, one per kind of answer: a label, a number, labels per token, a span."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor, nn

from transformer.data.corpora import load_corpus
from transformer.data.corpora.treebank import load_treebank, split_articles
from transformer.model.embedding import TokenEmbedding
from transformer_book.studies.other_tasks import digits, rivers, words
from transformer_book.studies.other_tasks.encoder_model import VectorEmbedding, best_span, pad_rows

D_MODEL = 32
Part = Literal["validation", "test"]
Scores = dict[str, float]
Answers = Mapping[str, Tensor]


@dataclass(frozen=True)
class Task:
    """Inputs, answers and scores of a task; methods are compared by the first score."""

    name: str
    inputs: Tensor
    answers: Answers
    test_inputs: Tensor
    test_answers: Answers
    symbols: int  #: number of token ids, or of features per position.
    outputs: int
    each: bool  #: whether there is an answer per position
    #: of outputs (B, outputs) or (B, S, outputs) and the answers of the same rows.
    loss: Callable[[Tensor, Answers], Tensor]
    score: Callable[[Tensor, Answers], Scores]  #: of outputs for a set and its answers.
    #: name and scores of a simple method that is not a network.
    simple: tuple[str, Callable[[], Scores]]
    boosting: Callable[[], Scores]  #: scores of gradient boosting.
    steps: int = 250

    def embedding(self) -> nn.Module:
        """Make the layer in front of a network."""
        if self.inputs.is_floating_point():
            return VectorEmbedding(self.symbols, D_MODEL)
        return TokenEmbedding(self.symbols, D_MODEL)


def _digits(part: Part) -> Task:
    learn, probe = digits.load_digits()
    if part == "validation":
        learn, probe = learn[:1000], learn[1000:]
    flat = [part.images.flatten(1).numpy() for part in (learn, probe)]

    def fitted(method: Any) -> Scores:
        method.fit(flat[0], learn.labels.numpy())
        return {"right, %": 100 * method.score(flat[1], probe.labels.numpy())}

    return Task(
        "digits",
        digits.cut_patches(learn.images),
        {"label": learn.labels},
        digits.cut_patches(probe.images),
        {"label": probe.labels},
        symbols=4, outputs=10, each=False,
        loss=lambda made, right: F.cross_entropy(made, right["label"]),
        score=lambda made, right: {
            "right, %": 100 * (made.argmax(-1) == right["label"]).float().mean().item()
        },
        simple=("3 nearest images", lambda: fitted(KNeighborsClassifier(3))),
        boosting=lambda: fitted(HistGradientBoostingClassifier(random_state=0)),
        steps=400,
    )  # fmt: skip


def _rivers(part: Part) -> Task:
    record = rivers.load_rivers()
    cuts = {
        "validation": (rivers.TEST_FROM - 183, rivers.TEST_FROM),
        "test": (rivers.TEST_FROM, rivers.DAYS),
    }
    first, end = cuts[part]
    past = rivers.cut_windows(record, 0, first)
    later = rivers.cut_windows(record, first, end)

    def answers_of(windows: rivers.Windows) -> Answers:
        return dict(flow=windows.flow, today=windows.today, river=windows.river)

    def scores_of(forecast: Tensor, right: Answers) -> Scores:
        each = torch.stack([
            rivers.efficiency(forecast[right["river"] == i], right["flow"][right["river"] == i])
            for i in range(len(rivers.NAMES))
        ])  # fmt: skip
        days = {f"day {i + 1}": value for i, value in enumerate(each.mean(dim=0).tolist())}
        return {"efficiency": each.mean().item()} | days

    def forecast(made: Tensor, right: Answers) -> Tensor:
        last = right["today"].sqrt()[:, None]
        return (last + made[:, -rivers.HORIZON :, 0]).clamp(min=0).square()

    def roots(windows: rivers.Windows) -> np.ndarray:
        return (windows.flow.sqrt() - windows.today.sqrt()[:, None]).numpy()

    def boosted() -> Scores:
        x, test = past.inputs.flatten(1).numpy(), later.inputs.flatten(1).numpy()
        days = [
            HistGradientBoostingRegressor(random_state=0).fit(x, y).predict(test)
            for y in roots(past).T
        ]
        made = torch.tensor(np.stack(days, axis=1), dtype=torch.float32)[..., None]
        return scores_of(forecast(made, answers_of(later)), answers_of(later))

    return Task(
        "rivers", past.inputs, answers_of(past), later.inputs, answers_of(later),
        symbols=6, outputs=1, each=True,
        loss=lambda made, right: F.mse_loss(
            made[:, -rivers.HORIZON :, 0], right["flow"].sqrt() - right["today"].sqrt()[:, None]
        ),
        score=lambda made, right: scores_of(forecast(made, right), right),
        simple=("as today", lambda: scores_of(
            later.today[:, None].expand(-1, rivers.HORIZON), answers_of(later))),
        boosting=boosted,
    )  # fmt: skip


def _f1(found: Tensor, wanted: Tensor) -> float:
    return 200 * (found & wanted).sum().item() / max((found.sum() + wanted.sum()).item(), 1)


def _rates(ids: Sequence[Sequence[int]], marks: Sequence[Sequence[bool]]) -> dict[int, Any]:
    """Return, for each id, its log count and the smoothed share of its marked occurrences."""
    all_of, marked = Counter[int](), Counter[int]()
    for row, flags in zip(ids, marks, strict=True):
        all_of.update(row)
        marked.update(i for i, flag in zip(row, flags, strict=True) if flag)
    return {i: (np.log(n), (marked[i] + 0.1) / (n + 1)) for i, n in all_of.items()}


def _window_features(
    ids: Sequence[Sequence[int]], tables: Sequence[Mapping[int, Any]], reach: int = 2
) -> np.ndarray:
    """Return a row per word: position, length, and the statistics of it and its neighbours."""
    width = 2 * len(tables)
    none = [(-1.0, -1.0)] * len(tables)
    rows = []
    for row in ids:
        said = [[table.get(i, (-1.0, -1.0)) for table in tables] for i in row]
        around = [none] * reach + said + [none] * reach
        flat = np.reshape(around, (-1, width))
        for i in range(len(row)):
            rows.append([i, len(row), *flat[i : i + 2 * reach + 1].ravel()])
    return np.array(rows)


def _boosted_words(
    ids: Sequence[Sequence[int]],
    marks: Sequence[Sequence[Sequence[bool]]],
    test_ids: Sequence[Sequence[int]],
) -> list[np.ndarray]:
    """Fit a classifier per mark on statistics of other sentences; return log odds of all words."""
    halves = [list(range(k, len(ids), 2)) for k in (0, 1)]
    tables = [
        [_rates([ids[i] for i in part], [kind[i] for i in part]) for kind in marks]
        for part in halves
    ]
    x = np.concatenate(
        [_window_features([ids[i] for i in halves[k]], tables[1 - k]) for k in (0, 1)]
    )
    test = _window_features(test_ids, tables[0])
    found = []
    for kind in marks:
        y = [flag for part in halves for i in part for flag in kind[i]]
        method = HistGradientBoostingClassifier(random_state=0)
        found.append(method.fit(x, y).decision_function(test))
    return found


def _names(part: Part) -> Task:
    splits = load_corpus("tatoeba-en-de").splits
    learn = words.named_sentences(splits["train"].source, 6000)
    name, count = {"validation": ("validation", 1000), "test": ("challenge", 3000)}[part]
    probe = words.named_sentences(splits[name].source, count)
    vocabulary = words.WordIds([each.words for each in learn])
    ids = [vocabulary.encode(each.words) for each in learn]
    test_ids = [vocabulary.encode(each.words) for each in probe]

    def answers_of(part: Sequence[words.Named]) -> Answers:
        names = pad_rows([each.names for each in part]).bool()
        real = pad_rows([[i > 0 for i, _ in enumerate(each.words)] for each in part]).bool()
        new = pad_rows([[w not in vocabulary.seen for w in each.words] for each in part]).bool()
        return dict(name=names, real=real, new=new & real)

    def scores_of(found: Tensor, right: Answers) -> Scores:
        def f1(where: Tensor) -> float:
            return _f1(found & where, right["name"] & where)

        return {"F1": f1(right["real"]), "F1, unread words": f1(right["new"])}

    probed = answers_of(probe)

    def placed(values: Sequence[Any]) -> Tensor:
        found = torch.zeros(probed["real"].shape, dtype=torch.bool)
        found[pad_rows([[1] * len(row) for row in test_ids]).bool()] = torch.tensor(values)
        return found

    def usual() -> Scores:
        table = _rates(ids, [each.names for each in learn])
        return scores_of(
            placed([table.get(i, (0, 0))[1] > 0.5 for row in test_ids for i in row]), probed
        )

    def boosted() -> Scores:
        (odds,) = _boosted_words(ids, [[each.names for each in learn]], test_ids)
        return scores_of(placed((odds > 0).tolist()), probed)

    return Task(
        "names", pad_rows(ids), answers_of(learn), pad_rows(test_ids), probed,
        symbols=len(vocabulary), outputs=1, each=True,
        loss=lambda made, right: F.binary_cross_entropy_with_logits(
            made[..., 0][right["real"]], right["name"][right["real"]].float()
        ),
        score=lambda made, right: scores_of(made[..., 0] > 0, right),
        simple=("the word alone", usual),
        boosting=boosted,
    )  # fmt: skip


def _phrases(part: Part) -> Task:
    bank = load_treebank()
    parts = split_articles(bank.articles)
    known = parts["train"] if part == "validation" else [*parts["train"], *parts["validation"]]
    learn = words.phrases_of(bank.trees(known))
    probe = words.phrases_of(bank.trees(parts[part]))
    vocabulary = words.WordIds([[*words.QUESTIONS, *each.words] for each in learn])

    def encoded(part: Sequence[words.Phrases]) -> list[list[int]]:
        return [vocabulary.encode([q, *each.words]) for each in part for q in words.QUESTIONS]

    def spans_of(part: Sequence[words.Phrases]) -> list[tuple[int, int]]:
        # The question is at 0, so the first word is at 1; the last word of a span is in it.
        return [(start + 1, end) for each in part for start, end in each.spans]

    def answers_of(part: Sequence[words.Phrases]) -> Answers:
        real = pad_rows([[0, *[1] * (len(row) - 1)] for row in encoded(part)]).bool()
        return dict(span=torch.tensor(spans_of(part)), real=real)

    ids, test_ids = encoded(learn), encoded(probe)
    probed = answers_of(probe)

    def right_spans(start: Tensor, end: Tensor, right: Answers) -> Scores:
        exact = (start == right["span"][:, 0]) & (end == right["span"][:, 1])
        both = 100 * exact.float()
        return {"exact, %": both.mean().item(), "subject": both[::2].mean().item(),
                "object": both[1::2].mean().item()}  # fmt: skip

    def loss(made: Tensor, right: Answers) -> Tensor:
        logits = made.masked_fill(~right["real"][..., None], -1e9)
        return F.cross_entropy(logits, right["span"])  # positions are the classes

    def usual() -> Scores:
        most = [Counter(spans_of(learn)[k::2]).most_common(1)[0][0] for k in (0, 1)]
        found = torch.tensor(most * len(probe))
        return right_spans(found[:, 0], found[:, 1], probed)

    def boosted() -> Scores:
        spans = spans_of(learn)
        marks = [
            [
                [i == span[side] for i in range(len(row))]
                for row, span in zip(ids, spans, strict=True)
            ]
            for side in (0, 1)
        ]
        logits = torch.zeros(*probed["real"].shape, 2)
        present = pad_rows([[1] * len(row) for row in test_ids]).bool()
        for k in (0, 1):  # one pair of classifiers per question
            odds = _boosted_words(ids[k::2], [m[k::2] for m in marks], test_ids[k::2])
            part = logits[k::2]
            part[present[k::2]] = torch.tensor(np.stack(odds, axis=1), dtype=torch.float32)
        return right_spans(*best_span(logits, probed["real"]), probed)

    return Task(
        "phrases", pad_rows(ids), answers_of(learn), pad_rows(test_ids), probed,
        symbols=len(vocabulary), outputs=2, each=True,
        loss=loss,
        score=lambda made, right: right_spans(*best_span(made, right["real"]), right),
        simple=("the most frequent span", usual),
        boosting=boosted,
        steps=400,
    )  # fmt: skip


_MAKERS = {"digits": _digits, "rivers": _rivers, "names": _names, "phrases": _phrases}
NAMES = tuple(_MAKERS)
PARTS: tuple[Part, ...] = get_args(Part)


@cache
def load_task(name: str, part: Part = "test") -> Task:
    """Load a task by its name: "digits", "rivers", "names" or "phrases"."""
    return _MAKERS[name](part)
