"""Nine planted bugs against seven tests: a batch learned by heart, four properties, a twin."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer.data.batching import Batch
from transformer.interop import to_torch
from transformer.model.config import TransformerConfig
from transformer.model.masks import causal_mask
from transformer.model.positional import NoPositions
from transformer.model.transformer import Transformer
from transformer.recipes.record import read_record
from transformer.training.loss import TranslationLoss
from transformer_book.studies.lacking import Missing, Runs, lacking
from transformer_book.studies.masks.peeking import PeekingTransformer
from transformer_book.studies.properties import (
    cache_gap,
    leak_gap,
    order_gap,
    padding_gap,
    shift_right,
)
from transformer_book.studies.toy import REVERSE, recited, toy_config
from transformer_book.studies.training_loop import optimise

RECORD = Path(__file__).with_name("record.json")
TESTS = ("loss", "recite", "leak", "padding", "order", "cache", "twin")
STEPS = 400
SEEDS = range(1, 11)
PAIRS = 8  # of the batch that is learned by heart
RATE = 3e-3
# One id more than the task needs, for the bug with the wrong id for padding.
CONFIG = toy_config(REVERSE, vocab_size=REVERSE.vocab_size + 1)


@dataclass(frozen=True)
class Bug:
    """A change that makes a correct model wrong."""

    name: str
    changes: dict[str, Any] = field(default_factory=dict)
    #: a function that changes the finished model.
    plant: Callable[[Transformer], None] = lambda model: None
    future: int = 0  #: number of later positions that the decoder can see.
    #: whether the decoder's input is shifted by one position, as it should be.
    shifted: bool = True

    def make(self, config: TransformerConfig) -> Transformer:
        """Make a model with this bug from the configuration of the correct one."""
        config = TransformerConfig.from_dict(config.to_dict() | self.changes)
        model = PeekingTransformer(config, self.future) if self.future else Transformer(config)
        self.plant(model)
        return model

    def shift(self, labels: Int[Tensor, "B T"]) -> Int[Tensor, "B T"]:
        """Make the decoder's input from the labels."""
        return shift_right(labels) if self.shifted else labels


def _take_positions_out(model: Transformer) -> None:
    model.positions = model.target_positions = NoPositions()


def _cut_the_source_off(model: Transformer) -> None:
    for layer in model.decoder:
        for parameter in layer.cross_attention.output_projection.parameters():
            nn.init.zeros_(parameter).requires_grad_(False)


def _decode_at_position_0(model: Transformer) -> None:
    whole = model.decode_next

    def decode_next(tokens: Tensor, state: Any) -> Tensor:
        state.position = 0
        return whole(tokens, state)

    vars(model)["decode_next"] = decode_next


def _leave_embeddings_small(model: Transformer) -> None:
    model.embedding.scale = 1.0


NO_BUG = Bug("nothing wrong")
BUGS = (
    Bug("source cut off", plant=_cut_the_source_off),
    Bug("target not shifted", shifted=False),
    Bug("no causal mask", future=10_000),
    Bug("decodes at position 0", plant=_decode_at_position_0),
    Bug("no positions", plant=_take_positions_out),
    # The last id of the vocabulary; the data must not use it.
    Bug("wrong id for padding", changes=dict(pad_id=15)),
    Bug("scores not divided", changes=dict(attention_scale=1.0)),
    Bug("embeddings not scaled", plant=_leave_embeddings_small),
    Bug("a norm too many", changes=dict(final_norm=True)),
)


def memorise(bug: Bug, model: Transformer, batch: Batch) -> np.ndarray:
    """Train on a single batch over and over, and return the losses."""
    objective = TranslationLoss(model, epsilon=0.0)
    target_input = bug.shift(batch.labels)
    tokens = (batch.labels != model.config.pad_id).sum()

    def loss(step: int) -> Tensor:
        return objective(batch.source, target_input, batch.labels)[0] / tokens

    return np.array(optimise(model, loss, STEPS, lambda step: RATE))


def logits_by_torch(
    model: Transformer, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"]
) -> Float[Tensor, "B T V"]:
    """Run PyTorch's two stacks between our embeddings and our output matrix."""
    padding = source == model.config.pad_id
    states = to_torch(model)(
        model.positions(model.embedding(source)),
        model.positions(model.embedding(target)),
        tgt_mask=~causal_mask(target.size(1)),  # theirs: True = hidden
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
    )
    return F.linear(states, model.output_weight)


@torch.no_grad()
def twin_gap(model: Transformer, batch: Batch) -> float:
    """Copy the parameters into a correct model, run it by PyTorch, and compare the logits."""
    correct = Transformer(CONFIG).eval()
    correct.load_state_dict(model.state_dict(), strict=False)
    expected = logits_by_torch(correct, batch.source, batch.target_input)
    found = model(batch.source, batch.target_input)
    return (found - expected)[batch.labels != CONFIG.pad_id].abs().max().item()


def examine(bug: Bug, seed: int) -> list[float]:
    """Train a model with a bug on one batch, and run all tests."""
    torch.manual_seed(seed)
    model, batch = bug.make(CONFIG), REVERSE.batch(PAIRS, seed=seed)
    losses = memorise(bug, model, batch)
    gaps = [gap(model, batch) for gap in (padding_gap, order_gap, cache_gap, twin_gap)]
    leak = leak_gap(model, batch, bug.shift)
    return [float(losses[-1]), recited(model, batch), leak, *gaps]


def noticed(measured: np.ndarray) -> np.ndarray:
    """Apply the rule of each test to its number, on the last axis of ``measured``."""
    found = measured > 0.01
    found[..., TESTS.index("loss")] = measured[..., TESTS.index("loss")] > 0.1
    found[..., TESTS.index("recite")] = measured[..., TESTS.index("recite")] < 0.8
    found[..., TESTS.index("order")] = measured[..., TESTS.index("order")] < 0.01
    return found


def recorded() -> np.ndarray:
    """Read the measurements: by bug, seed and test."""
    runs = {(run["bug"], run["seed"]): run["measured"] for run in read_record(RECORD)["runs"]}
    return np.array([[runs[bug.name, seed] for seed in SEEDS] for bug in (NO_BUG, *BUGS)])


#: What the record says before its runs.
HEADING = dict(pairs=PAIRS, rate=RATE, tests=TESTS, steps=STEPS)


def missing(runs: Runs) -> Missing:
    """Train what a record lacks, and yield each run with a line about it."""
    bugs = {bug.name: bug for bug in (NO_BUG, *BUGS)}
    for case in lacking(runs, bug=bugs, seed=SEEDS):
        values = examine(**case | dict(bug=bugs[case["bug"]]))
        yield case | dict(measured=[float(f"{value:.3g}") for value in values]), str(case)
