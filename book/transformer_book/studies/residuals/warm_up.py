"""Small Transformers reverse sequences, post-norm or pre-norm, with or without a warm-up."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.func import functional_call, grad_and_value, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from transformer.data.progress import progress
from transformer.model.config import NormPlacement
from transformer.model.transformer import Transformer
from transformer_book.studies.recording import Recording
from transformer_book.studies.toy import REVERSE, ToyTask, toy_config

RECORD = Path(__file__).parent / "warm_up.json"

# Five symbols, each one of six, to be written backwards. Equal lengths need no padding.
TASK = ToyTask(REVERSE.rule, symbols=6, shortest=5, longest=5)

NORMS: tuple[NormPlacement, ...] = ("post", "pre")
PEAKS = (4e-3, 1e-3)  # learning rates after the warm-up, in the order of the recording
WARMUPS = (0, 100)  # steps; 100 = 2 / (1 - beta2), the rule of Ma and Yarats
SEEDS = (1, 2, 3, 4, 5)
STEPS = 500
LONGER = 1500  # steps of post-norm at the high rate, with and without a warm-up
WINDOW = 25  # steps; the record keeps the mean loss of each window
BATCH = 16


def schedule(peak: float, warmup: int) -> Callable[[int], float]:
    """Return a schedule over steps counted from 1: a linear rise, then a constant rate."""
    return lambda step: peak * min(1.0, step / warmup) if warmup else peak


def make(norm: NormPlacement, seed: int, layers: int = 6) -> Transformer:
    """Make a Transformer with 32 components per vector and the package's initialisation."""
    torch.manual_seed(seed)
    config = toy_config(TASK, d_model=32, d_ff=64, num_heads=2, num_layers=layers, norm=norm)
    return Transformer(config)


def learn_together(
    models: Sequence[Transformer],
    rates: Sequence[Callable[[int], float]],
    seeds: Sequence[int],
    steps: int = STEPS,
    betas: tuple[float, float] = (0.9, 0.98),
    eps: float = 1e-9,
) -> Float[np.ndarray, "models steps"]:
    """Train models of the same shape side by side with Adam. The models are left unchanged."""
    model = models[0]
    names = [name for name, _ in model.named_parameters()]
    weights = [torch.stack([part.detach() for part in parts])
               for parts in zip(*(each.parameters() for each in models), strict=True)]  # fmt: skip

    def loss(weights: list[Tensor], source: Tensor, inputs: Tensor, labels: Tensor) -> Tensor:
        chosen = dict(zip(names, weights, strict=True))
        logits = functional_call(model, chosen, (source, inputs))
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())

    gradients_of = vmap(grad_and_value(loss))
    means = [torch.zeros_like(weight) for weight in weights]
    squares = [torch.zeros_like(weight) for weight in weights]
    losses = np.empty((len(models), steps))
    # vmap does not support the test for padding, which depends on the values of the ids.
    model.source_mask = lambda source: None  # type: ignore[method-assign]
    try:
        for step in progress(range(1, steps + 1)):
            drawn = {seed: TASK.batch(BATCH, seed=seed * 1_000_000 + step) for seed in set(seeds)}
            batch = [
                torch.stack([getattr(drawn[seed], part) for seed in seeds])
                for part in ("source", "target_input", "labels")
            ]
            with sdpa_kernel(SDPBackend.MATH):  # the fused kernel has no batched form
                gradients, values = gradients_of(weights, *batch)
            losses[:, step - 1] = values.numpy()
            now = torch.tensor([rate(step) for rate in rates]) / (1 - betas[0] ** step)
            for weight, slope, mean, square in zip(weights, gradients, means, squares, strict=True):
                mean.lerp_(slope, 1 - betas[0])
                square.mul_(betas[1]).addcmul_(slope, slope, value=1 - betas[1])
                down = (square / (1 - betas[1] ** step)).sqrt_().add_(eps)
                weight.sub_(now.view(-1, *[1] * (weight.ndim - 1)) * mean / down)
    finally:
        del model.source_mask
    return losses


def losses_of(
    runs: Iterable[Mapping[str, Any]], norm: str, peak: float, warmup: int
) -> Float[np.ndarray, "seeds windows"]:
    """Return the recorded losses of one way to train, a row per seed in rising order."""
    wanted = norm, peak, warmup
    found = {
        run["seed"]: run["losses"]
        for run in runs
        if (run["norm"], run["peak"], run["warmup"]) == wanted
    }
    return np.array([found[seed] for seed in sorted(found)])


#: Of the record.
HEADING = dict(steps=STEPS, window=WINDOW)


def fill(recording: Recording) -> None:
    """Train what a record lacks, with and without a warm-up; an entry per run."""
    content = recording.content
    runs = content.setdefault("runs", [])
    done = {(run["norm"], run["peak"]) for run in runs}
    for peak, norm in product(PEAKS, NORMS):
        if (norm, peak) not in done:
            runs += _train(norm, peak, WARMUPS, STEPS)
            recording.save(f"{norm}-norm, {peak}")
    if "longer" not in content:
        content["longer"] = _train("post", max(PEAKS), WARMUPS, LONGER)
        recording.save("longer")


def _train(
    norm: NormPlacement, peak: float, warmups: Sequence[int], steps: int
) -> list[dict[str, Any]]:
    """Train all seeds with each warm-up, side by side, and return an entry per run."""
    ways = list(product(SEEDS, warmups))
    losses = learn_together(
        [make(norm, seed) for seed, _ in ways],
        [schedule(peak, warmup) for _, warmup in ways],
        [seed for seed, _ in ways],
        steps,
    )
    windows = losses.reshape(len(ways), -1, WINDOW).mean(axis=2)
    return [
        dict(norm=norm, peak=peak, warmup=warmup, seed=seed, losses=curve.tolist())
        for (seed, warmup), curve in zip(ways, windows, strict=True)
    ]
