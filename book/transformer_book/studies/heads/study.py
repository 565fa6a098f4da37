"""Compare numbers of heads on four lookups: ten seeds, equal parameters, three training lengths."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from transformer.recording import record_attention
from transformer_book.studies.heads.lookups import LookupModel, Lookups, lookup_accuracy
from transformer_book.studies.training_loop import optimise

RECORD = Path(__file__).parent / "record.json"

# Eight objects on a table, each in one of eight colours; a query asks for four at once.
TASK = Lookups(slots=4, entries=8, keys=16, values=8)

D_MODEL = 32
BATCH = 32
SEEDS = tuple(range(1, 11))
HEADS = (1, 2, 4, 8, 16)
STEPS = (250, 1000, 4000)
LONGER = 16_000  # steps of one head: does it learn all four lookups?
RATES = (0.00125, 0.0025, 0.005, 0.01, 0.02)
HIDDEN = 128


@dataclass(frozen=True)
class Setting:
    """The settings that a set of runs shares; the runs differ in their seed."""

    heads: int  #: number of attention heads.
    steps: int  #: number of training steps, over which the learning rate falls linearly to zero.
    rate: float  #: learning rate of the first step.
    hidden: int = HIDDEN  #: units of the readout's hidden layer; 0 for a linear readout.

    def model(self, seed: int) -> LookupModel:
        """Initialise a model from a seed."""
        torch.manual_seed(seed)
        return LookupModel(TASK, self.heads, D_MODEL, hidden=self.hidden)


SETTINGS = (
    *(Setting(*case) for case in product(HEADS, STEPS, RATES)),
    *(Setting(heads, STEPS[1], rate, hidden=0) for heads, rate in product(HEADS, RATES)),
    *(Setting(1, LONGER, rate) for rate in RATES),
)


class _Together(nn.Module):
    """Models of one shape as one module, with a leading model axis on every parameter."""

    def __init__(self, models: Sequence[LookupModel]):
        super().__init__()
        self.names = [name for name, _ in models[0].named_parameters()]
        stacked, self.rest = stack_module_state(list(models))
        self.stacked = nn.ParameterList([stacked[name].detach() for name in self.names])
        self.shape = [models[0]]  # in a list, so that its parameters are not trained

    def forward(self, asked: Tensor, table: Tensor) -> Tensor:
        def one(parameters: dict[str, Tensor], rest: dict[str, Tensor], *batch: Tensor) -> Tensor:
            return functional_call(self.shape[0], (parameters, rest), batch)

        parameters = dict(zip(self.names, self.stacked, strict=True))
        # The weights are not needed, but PyTorch cannot batch its fused kernel over models.
        with record_attention(self.shape[0]):
            return vmap(one)(parameters, self.rest, asked, table)


def learn(setting: Setting, seeds: Sequence[int] = SEEDS) -> list[LookupModel]:
    """Train one model per seed on fresh tables, all in the same steps, each as if it were alone."""
    models = [setting.model(seed) for seed in seeds]
    together = _Together(models)

    def loss(step: int) -> Tensor:
        batches = [TASK.batch(BATCH, seed * 1_000_000 + step) for seed in seeds]
        asked, table, right = (torch.stack(part) for part in zip(*batches, strict=True))
        logits = together(asked, table)
        mean = nn.functional.cross_entropy(logits.flatten(0, -2), right.flatten())
        return mean * len(seeds)  # so each model gets the gradient of its own mean

    optimise(together, loss, setting.steps, lambda t: setting.rate * (1 - (t - 1) / setting.steps))
    for number, model in enumerate(models):
        learned = zip(together.names, together.stacked, strict=True)
        model.load_state_dict({k: v.detach()[number] for k, v in learned}, strict=False)
        model.eval()
    return models


@torch.no_grad()
def weight_on_slots(
    model: LookupModel, size: int = 2000, seed: int = 10**12
) -> Float[Tensor, "heads slots"]:
    """Return each head's mean weight on the entry that each slot asks for."""
    asked, table, _ = model.task.batch(size, seed)
    with record_attention(model) as recorded:
        model(asked, table)
    (weights,) = recorded.values()
    here = (table[:, None, :, 0] == asked[:, :, None]).float()
    return (weights[:, :, 0] @ here.mT).mean(dim=0)


def found(runs: Iterable[Mapping[str, Any]], setting: Setting) -> Float[np.ndarray, " seeds"]:
    """Return a setting's recorded shares of right answers, one per seed."""
    wanted = asdict(setting)
    (run,) = [run for run in runs if all(run[key] == value for key, value in wanted.items())]
    return np.array(run["right"])


def best(
    runs: Iterable[Mapping[str, Any]], heads: int, steps: int, hidden: int = HIDDEN
) -> Setting:
    """Return the setting with the learning rate whose mean share of right answers is highest."""
    runs = list(runs)
    tried = [Setting(heads, steps, rate, hidden) for rate in RATES]
    return max(tried, key=lambda setting: found(runs, setting).mean())


#: What the record says before its runs.
HEADING = dict(seeds=SEEDS, d_model=D_MODEL, batch=BATCH)


def missing(runs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    """Train what a record lacks, and yield each run with a line about it."""
    done = [{key: run[key] for key in asdict(SETTINGS[0])} for run in runs]
    for setting in SETTINGS:
        if asdict(setting) in done:
            continue
        models = learn(setting)
        right = [lookup_accuracy(model) for model in models]
        size = sum(weight.numel() for weight in models[0].parameters())
        run = asdict(setting) | dict(parameters=size, right=right)
        if setting.heads == TASK.slots:
            run["weight_on_slots"] = [weight_on_slots(model).tolist() for model in models]
        yield run, f"{setting}: {sum(right) / len(right):.3f}"
