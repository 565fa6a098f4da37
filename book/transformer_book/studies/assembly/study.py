"""Nine planted bugs against seven tests: a batch learned by heart, four properties, parity."""

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from transformer.data.batching import Batch
from transformer.interop import to_torch
from transformer.model.masks import causal_mask
from transformer.model.transformer import Transformer
from transformer.recipes.record import read_record
from transformer_book.studies.assembly.memorising import BUGS, NO_BUG, Bug, memorise
from transformer_book.studies.lacking import Missing, Runs, lacking
from transformer_book.studies.properties import cache_gap, leak_gap, order_gap, padding_gap
from transformer_book.studies.toy import REVERSE, recited, toy_config

RECORD = Path(__file__).with_name("record.json")
TESTS = ("loss", "recite", "leak", "padding", "order", "cache", "parity")
STEPS = (100, 400)
SEEDS = range(1, 11)
PAIRS = 8  # of the batch that is learned by heart
RATE = 3e-3
# One id more than the task needs, for the bug with the wrong id for padding.
CONFIG = toy_config(REVERSE, vocab_size=REVERSE.vocab_size + 1)


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
def parity_gap(model: Transformer, batch: Batch) -> float:
    """Copy the parameters into a correct model, run it by PyTorch, and compare the logits."""
    correct = Transformer(CONFIG).eval()
    correct.load_state_dict(model.state_dict(), strict=False)
    expected = logits_by_torch(correct, batch.source, batch.target_input)
    found = model(batch.source, batch.target_input)
    return (found - expected)[batch.labels != CONFIG.pad_id].abs().max().item()


def examine(bug: Bug, seed: int, steps: int) -> list[float]:
    """Train a model with a bug on one batch, and run all tests."""
    torch.manual_seed(seed)
    model, batch = bug.make(CONFIG), REVERSE.batch(PAIRS, seed=seed)
    losses = memorise(model, batch, steps, rate=RATE, shift=bug.shift)
    gaps = [gap(model, batch) for gap in (padding_gap, order_gap, cache_gap, parity_gap)]
    leak = leak_gap(model, batch, bug.shift)
    return [float(losses[-1]), recited(model, batch), leak, *gaps]


def noticed(measured: np.ndarray) -> np.ndarray:
    """Apply the rule of each test to its number, on the last axis of ``measured``."""
    found = measured > 0.01
    found[..., TESTS.index("loss")] = measured[..., TESTS.index("loss")] > 0.1
    found[..., TESTS.index("recite")] = measured[..., TESTS.index("recite")] < 0.8
    found[..., TESTS.index("order")] = measured[..., TESTS.index("order")] < 0.01
    return found


def recorded(steps: int) -> np.ndarray:
    """Read the measurements taken after a number of training steps."""
    runs = {(r["bug"], r["seed"]): r["measured"]
            for r in read_record(RECORD)["runs"] if r["steps"] == steps}  # fmt: skip
    return np.array([[runs[bug.name, seed] for seed in SEEDS] for bug in (NO_BUG, *BUGS)])


#: What the record says before its runs.
HEADING = dict(pairs=PAIRS, rate=RATE, tests=TESTS)


def missing(runs: Runs) -> Missing:
    """Train what a record lacks, and yield each run with a line about it."""
    bugs = {bug.name: bug for bug in (NO_BUG, *BUGS)}
    for case in lacking(runs, steps=STEPS, bug=bugs, seed=SEEDS):
        values = examine(**case | dict(bug=bugs[case["bug"]]))
        yield case | dict(measured=[float(f"{value:.3g}") for value in values]), str(case)
