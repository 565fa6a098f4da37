"""One layer of attention learns to look words up, with one of several scores, side by side."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_book.studies.training_loop import optimise

RECORD = Path(__file__).parent / "record.json"

WORDS, ANSWERS, ENTRIES, D_MODEL = 128, 12, 12, 64
BATCH, TESTS = 32, 400  # tables per training step, and tables to measure on
MODELS = 10
SIZES = (4, 16, 64, 128)  # of a query and a key
RATES = (0.001, 0.003, 0.01, 0.03, 0.06)  # learning rates, constant
STEPS = (0, 25, 50, 100, 200, 400)  # training steps after which the models are measured
CONTROL_SIZE = 64  # at which the start is varied


@dataclass(frozen=True)
class Kind:
    """A score and its initialisation."""

    name: str  #: as shown in tables.
    additive: bool = False  #: v^T tanh(q + k); otherwise a dot product.
    divided: bool = False  #: whether the dot product is divided by sqrt(d_k).
    #: initial scale of a dot product. "own" gives the components of queries and keys variance 1, so
    #: that scores have standard deviation 1 if divided and sqrt(d_k) if not; "small" divides the
    #: initial w_q by sqrt(d_k), "large" multiplies it. "wide" doubles v of the additive score, so
    #: that scores spread as widely as those of the divided dot product.
    start: str = "own"


PLAIN = Kind("plain dot product")
SCALED = Kind("scaled dot product", divided=True)
ADDITIVE = Kind("additive", additive=True)
SMALL_PLAIN = Kind("plain, small queries", start="small")
LARGE_SCALED = Kind("scaled, large queries", divided=True, start="large")
WIDE_ADDITIVE = Kind("additive, wide scores", additive=True, start="wide")  # not recorded
SCORES = PLAIN, SCALED, ADDITIVE
CONTROLS = SMALL_PLAIN, LARGE_SCALED


@dataclass(frozen=True)
class Tables:
    """Tables to look words up in."""

    #: (M, B, S) the words of the entries, without repetition in a table.
    words: Int[Tensor, "M B S"]
    answers: Int[Tensor, "M B S"]  #: (M, B, S) their answers.
    wanted: Int[Tensor, "M B"]  #: (M, B) the entry whose word is the query.

    @classmethod
    def draw(cls, models: int, size: int, seed: int) -> "Tables":
        """Draw ``size`` tables for each model; the same seed draws the same tables."""
        generator = torch.Generator().manual_seed(seed)
        order = torch.rand(models, size, WORDS, generator=generator).argsort(dim=-1)
        answers = torch.randint(ANSWERS, (models, size, ENTRIES), generator=generator)
        wanted = torch.randint(ENTRIES, (models, size), generator=generator)
        return cls(order[..., :ENTRIES], answers, wanted)

    def right(self) -> Int[Tensor, "M B"]:
        """Return the answers of the wanted entries."""
        return self.answers.gather(-1, self.wanted[..., None])[..., 0]


class Recall(nn.Module):
    """Attention over the entries of a table, and one linear layer: M models side by side."""

    words: Tensor

    def __init__(self, kind: Kind, d_k: int, models: int = MODELS, seed: int = 0):
        super().__init__()
        self.kind, self.d_k = kind, d_k
        generator = torch.Generator().manual_seed(seed)

        def normal(*shape: int, std: float = 1.0) -> Tensor:
            return std * torch.randn(models, *shape, generator=generator)

        self.register_buffer("words", normal(WORDS, D_MODEL))
        query_std = {"own": 1.0, "small": d_k**-0.5, "large": d_k**0.5, "wide": 1.0}[kind.start]
        self.w_q = nn.Parameter(normal(D_MODEL, d_k, std=query_std * D_MODEL**-0.5))
        self.w_k = nn.Parameter(normal(D_MODEL, d_k, std=D_MODEL**-0.5))
        self.values = nn.Parameter(normal(ANSWERS, D_MODEL))
        self.output = nn.Parameter(normal(D_MODEL, ANSWERS, std=D_MODEL**-0.5))
        v_std = (2 if kind.start == "wide" else 1) * d_k**-0.5
        self.v = nn.Parameter(normal(d_k, std=v_std)) if kind.additive else None

    def scores(self, tables: Tables) -> Float[Tensor, "M B S"]:
        """Score the entries of each table against the wanted word."""
        model = torch.arange(len(self.words))[:, None, None]
        words = self.words[model, tables.words]  # (M, B, S, d_model)
        asked = words.take_along_dim(tables.wanted[..., None, None], dim=2)
        key = (words.flatten(1, 2) @ self.w_k).unflatten(1, words.shape[1:3])  # (M, B, S, d_k)
        query = (asked.flatten(1, 2) @ self.w_q)[:, :, None]  # (M, B, 1, d_k)
        if self.v is not None:
            return (torch.tanh(query + key) @ self.v[:, None, :, None])[..., 0]
        scores = (query @ key.mT)[..., 0, :]
        return scores / self.d_k**0.5 if self.kind.divided else scores

    def answer(
        self, scores: Float[Tensor, "M B S"], tables: Tables
    ) -> Float[Tensor, "M B answers"]:
        """Read the values by the softmax of the scores, and return a logit per answer."""
        each = F.one_hot(tables.answers, ANSWERS).float()  # (M, B, S, answers)
        shares = (scores.softmax(dim=-1)[..., None, :] @ each)[..., 0, :]  # (M, B, answers)
        return shares @ self.values @ self.output

    def loss(self, scores: Float[Tensor, "M B S"], tables: Tables) -> Tensor:
        """Compute each model's mean cross-entropy, summed over the models."""
        logits = self.answer(scores, tables).flatten(0, 1)
        return F.cross_entropy(logits, tables.right().flatten()) * len(self.words)

    @torch.no_grad()
    def measure(self) -> dict[str, list[float]]:
        """Measure every model on new tables: right answers, and spread of scores."""
        tables = Tables.draw(len(self.words), TESTS, seed=10**9)
        scores = self.scores(tables)
        right = self.answer(scores, tables).argmax(dim=-1) == tables.right()
        spread = scores.var(dim=-1).mean(dim=-1).sqrt()
        return dict(answers=right.float().mean(dim=-1).tolist(), spread=spread.tolist())


def learn(
    kind: Kind, d_k: int, rate: float, models: int = MODELS, steps: Sequence[int] = STEPS
) -> tuple[Recall, list[dict[str, list[float]]]]:
    """Train models and measure them along the way."""
    model, found = Recall(kind, d_k, models), []

    def loss(step: int) -> Tensor:
        if step - 1 in steps:
            found.append(model.measure())
        tables = Tables.draw(models, BATCH, seed=step)
        return model.loss(model.scores(tables), tables)

    optimise(model, loss, steps[-1], lambda _: rate)
    found.append(model.measure())
    return model, found


def measured(
    runs: Iterable[Mapping[str, Any]], kind: Kind, d_k: int, rate: float
) -> Float[np.ndarray, "models times"]:
    """Return recorded shares of right answers, per model and after each of ``STEPS``."""
    key = kind.name, d_k, rate
    [run] = [run for run in runs if (run["kind"], run["d_k"], run["rate"]) == key]
    return np.array(run["answers"]).T


#: Of the record.
HEADING = dict(steps=STEPS)


def missing(runs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    """Train what a record lacks, and yield each run with a line about it."""
    done = {(run["kind"], run["d_k"], run["rate"]) for run in runs}
    settings = [*product(SCORES, SIZES), *product(CONTROLS, (CONTROL_SIZE,))]
    for (kind, d_k), rate in product(settings, RATES):
        if (kind.name, d_k, rate) not in done:
            _, found = learn(kind, d_k, rate)
            run = {name: [each[name] for each in found] for name in found[0]}
            line = f"{kind.name}, {d_k}, {rate}: {sum(found[-1]['answers']) / 10:.2f}"
            yield dict(kind=kind.name, d_k=d_k, rate=rate) | run, line
