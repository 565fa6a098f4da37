"""Training runs of less than a second, for the tests."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from transformer.data.batching import EncodedPairs, Sentences, TokenBatches
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer.training.config import TrainingConfig
from transformer.training.trainer import Trainer

VOCAB_SIZE = 50


def make_pairs(count: int = 45, seed: int = 0) -> EncodedPairs:
    """Sentences of 1 to 7 random tokens and <eos>."""
    rng = np.random.default_rng(seed)

    def sentences() -> Sentences:
        rows = [[*rng.integers(3, VOCAB_SIZE, rng.integers(1, 8)), 2] for _ in range(count)]
        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        return Sentences(np.concatenate(rows).astype(np.int32), offsets)

    return EncodedPairs(sentences(), sentences())


def make_model(seed: int = 0, **changes) -> Transformer:
    torch.manual_seed(seed)
    small = dict(d_model=16, d_ff=24, num_heads=2, num_layers=1, dropout=0.2)
    return Transformer(TransformerConfig(VOCAB_SIZE, **small | changes))


def make_trainer(
    folder: Path | str,
    model: Transformer | None = None,
    pairs: EncodedPairs | None = None,
    validation: EncodedPairs | None = None,
    score: Callable | None = None,
    own: dict | None = None,
    **changes,
) -> Trainer:
    """A trainer whose epochs have about 10 batches; ``own`` are further arguments of Trainer."""
    small = dict(
        max_steps=16, batch_tokens=40, warmup_steps=8, log_every=1, validate_every=6, save_every=4,
        state_minutes=None,
    )  # fmt: skip
    config = TrainingConfig(**small | changes)
    return Trainer(
        model or make_model(),
        pairs or make_pairs(),
        config,
        folder,
        validation=TokenBatches(validation, 30) if validation else None,
        score=score,
        progress=False,
        **own or {},
    )


def at_step(trainer: Trainer, step: int, action: Callable[[], None], after: bool = False) -> None:
    """Do something just before or just after a step of the optimizer, counted from 1."""
    optimizer = trainer.optimizer
    register = optimizer.register_step_post_hook if after else optimizer.register_step_pre_hook
    register(lambda *_: action() if trainer.step + 1 == step else None)


def weights_of(model: torch.nn.Module) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in model.state_dict().items()}


def gradients_of(model: torch.nn.Module) -> dict[str, Tensor]:
    return {name: weight.grad.clone() for name, weight in model.named_parameters()}


def assert_close(a: dict, b: dict, **tolerance):
    assert a.keys() == b.keys()
    for name in a:
        torch.testing.assert_close(a[name], b[name], msg=lambda m, n=name: f"{n}: {m}", **tolerance)


def assert_equal(a: dict, b: dict):
    assert_close(a, b, rtol=0, atol=0)
