"""How fast a recipe trains on this machine, how well that uses it, and how long the paper's
training would take here.

Paper: section 5.2 (hardware and schedule), section 6.1, Table 2 (training cost)
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from transformer.data.batching import (
    Batch,
    EncodedPairs,
    Sentences,
    TokenBatches,
    encode_pairs,
    padding_waste,
)
from transformer.data.corpora import Split, load_corpus
from transformer.data.moses import moses_lowercased
from transformer.data.tokenizer import Tokenizer
from transformer.inference.device import choose_device, device_label
from transformer.model.config import TransformerConfig
from transformer.recipes.architectures import architecture, build_model
from transformer.recipes.cost import training_flops
from transformer.recipes.presets import Preset
from transformer.recipes.record import describe_environment
from transformer.training.config import Precision
from transformer.training.curve import read_curve
from transformer.training.stream import step_batches
from transformer.training.trainer import Trainer

#: Measurements that the pages of the book draw from, one record each.
MEASUREMENTS = Path(__file__).parent / "measurements"

#: Hours that the paper's training took on its eight P100, by number of steps.
PAPER_HOURS = {100_000: 12.0, 300_000: 84.0}

_TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class Throughput:
    """What was measured of the training steps of one recipe on one device.

    Args:
        preset: the recipe, as a dictionary.
        architecture: of its model, such as "transformer".
        text: what was trained on.
        device: its name.
        steps: optimiser steps that were timed.
        seconds_per_step: the median over blocks of steps.
        blocks: target tokens a second of each block, in their order.
        target_tokens_per_step: real ones, ``<eos>`` counted, padding not.
        source_tokens_per_step: the same of the source.
        padding: share of the token positions that is padding, in [0, 1).
        flops_per_step: operations of the matrix products on real tokens; None for a model whose
            operations :func:`~transformer.recipes.cost.training_flops` does not count.
        matrix_rate: operations a second that the device reaches in one large matrix product of
            the same precision.
        peak_memory: most bytes of GPU memory in use; None on a CPU.

    Paper: section 5.2
    """

    preset: dict[str, Any]
    architecture: str
    text: str
    device: str
    steps: int
    seconds_per_step: float
    blocks: Sequence[float]
    target_tokens_per_step: float
    source_tokens_per_step: float
    padding: float
    flops_per_step: float | None
    matrix_rate: float
    peak_memory: int | None

    @property
    def tokens_per_second(self) -> float:
        """Real target tokens a second.

        Paper: section 5.1 (25,000 of them a step)
        """
        return self.target_tokens_per_step / self.seconds_per_step

    @property
    def utilisation(self) -> float | None:
        """Share of the device's measured matrix rate that becomes useful arithmetic, in [0, 1]."""
        if self.flops_per_step is None:
            return None
        return self.flops_per_step / self.seconds_per_step / self.matrix_rate

    def hours(self, steps: int) -> float:
        """Hours that so many steps take, without validation and checkpoints.

        Paper: section 5.2
        """
        return steps * self.seconds_per_step / 3600

    def to_record(self) -> dict[str, Any]:
        """All that was measured and what follows from it, with the environment, as plain values.

        Paper: section 5.2
        """
        return dict(
            kind="throughput",
            preset=self.preset,
            architecture=self.architecture,
            text=self.text,
            device=self.device,
            precision=self.preset["training"]["precision"],
            steps=self.steps,
            seconds_per_step=self.seconds_per_step,
            target_tokens_per_second=self.tokens_per_second,
            target_tokens_per_second_of_blocks=list(self.blocks),
            target_tokens_per_step=self.target_tokens_per_step,
            source_tokens_per_step=self.source_tokens_per_step,
            padding=self.padding,
            flops_per_step=self.flops_per_step,
            matrix_flops_per_second=self.matrix_rate,
            utilisation=self.utilisation,
            peak_memory_bytes=self.peak_memory,
            hours={str(steps): self.hours(steps) for steps in PAPER_HOURS},
            paper_hours={str(steps): hours for steps, hours in PAPER_HOURS.items()},
            environment=describe_environment(),
        )

    def __str__(self) -> str:
        rate = f"{self.tokens_per_second:,.0f} target tokens/s"
        if self.utilisation is not None:
            rate += f", {self.utilisation:.1%} of {self.matrix_rate / 1e12:,.2f} TFLOP/s"
        times = (
            f"{steps:,} steps {self.hours(steps):,.1f} h (paper: {hours:g} h on eight P100)"
            for steps, hours in PAPER_HOURS.items()
        )
        return f"{self.preset['name']} on {self.device}: {rate}; {'; '.join(times)}"


def measure_throughput(
    preset: Preset,
    batches: TokenBatches,
    text: str = "random tokens",
    blocks: int = 5,
    steps: int = 20,
    warmup: int = 2,
) -> Throughput:
    """Time training steps of a recipe: the very loop that trains, data and optimiser included.

    Args:
        preset: the recipe.
        batches: of :func:`preset_batches` or :func:`random_batches`.
        text: what they are, for the record.
        blocks: how many blocks of steps to time.
        steps: steps of a block.
        warmup: blocks before those, for compilation and caches.

    Raises:
        ValueError: if a number of blocks or steps is not positive.

    Paper: section 5.2
    """
    for name, value in (("blocks", blocks), ("steps", steps), ("warmup", warmup)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    total = (warmup + blocks) * steps
    # The curve has the rate of every block; nothing else may happen in between.
    config = replace(
        preset.training, max_steps=total, log_every=steps, validate_every=total, save_every=total
    )
    torch.manual_seed(config.seed)
    with TemporaryDirectory() as folder:
        trainer = Trainer(build_model(preset.model), batches, config, folder, progress=False)
        device = trainer.accelerator.device
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        if not trainer.fit():
            raise InterruptedError("the measurement was interrupted")
        rates = [line["tokens_per_second"] for line in read_curve(Path(folder) / "curve.jsonl")]
        peak = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None
    stream = step_batches(batches, config.accumulate)
    groups = [step.batches for step in islice(stream, warmup * steps, total)]
    timed = [batch for group in groups for batch in group]
    flops = None
    if isinstance(preset.model, TransformerConfig):
        flops = mean(sum(batch_flops(preset.model, batch) for batch in group) for group in groups)
    per_block = [
        sum(batch.num_target_tokens for group in groups[i : i + steps] for batch in group)
        for i in range(0, len(groups), steps)
    ]
    seconds = [tokens / rate for tokens, rate in zip(per_block, rates[warmup:], strict=True)]
    return Throughput(
        preset=preset.to_dict(),
        architecture=architecture(preset.model),
        text=text,
        device=device_label(device),
        steps=len(groups),
        seconds_per_step=median(seconds) / steps,
        blocks=rates[warmup:],
        target_tokens_per_step=sum(per_block) / len(groups),
        source_tokens_per_step=sum(batch.num_source_tokens for batch in timed) / len(groups),
        padding=padding_waste(timed),
        flops_per_step=flops,
        matrix_rate=matrix_rate(device, config.precision),
        peak_memory=peak,
    )


def batch_flops(config: TransformerConfig, batch: Batch) -> float:
    """Operations of the matrix products that a batch asks for, padding not counted."""
    source = (batch.source != config.pad_id).sum(dim=1).tolist()
    target = (batch.labels != config.pad_id).sum(dim=1).tolist()
    return sum(training_flops(config, *lengths) for lengths in zip(source, target, strict=True))


def matrix_rate(
    device: torch.device | str | None = None,
    precision: Precision = "fp32",
    sizes: Sequence[int] | None = None,
    repeats: int = 5,
) -> float:
    """Measure the operations a second of large square matrix products: what a device can do.

    Args:
        device: where; None for the best of this machine.
        precision: type of the numbers.
        sizes: rows of the matrices; by default what fills a device of its kind.
        repeats: measurements for each size.

    Returns:
        The best of all measurements, two operations for a multiplication and its addition.

    Raises:
        ValueError: if ``sizes`` is empty or ``repeats`` is not positive.

    Paper: section 6.1, footnote 5 (it takes 9.5 TFLOPS for a P100)
    """
    device = choose_device() if device is None else torch.device(device)
    if sizes is None:
        sizes = (4096, 8192, 16384) if device.type == "cuda" else (512, 1024)
    if not sizes or repeats < 1:
        raise ValueError(f"sizes and repeats must not be empty, got {sizes} and {repeats}")
    best = 0.0
    for size in sizes:
        a, b = (torch.randn(size, size, device=device).to(_TYPES[precision]) for _ in range(2))
        out = a @ b  # the first one pays for the choice of a kernel
        for _ in range(repeats):
            _synchronize(device)
            started = time.perf_counter()
            for _ in range(3):
                torch.mm(a, b, out=out)
            _synchronize(device)
            best = max(best, 3 * 2 * size**3 / (time.perf_counter() - started))
    return best


def preset_batches(preset: Preset, data_dir: Path | str | None = None) -> TokenBatches:
    """Make the training batches of a preset from its own corpus.

    Args:
        preset: the recipe.
        data_dir: the user's own files, see :func:`~transformer.data.corpora.load_corpus`.

    Raises:
        FileNotFoundError: if the corpus is neither here nor to be downloaded.
        ValueError: if the text supports no vocabulary of that size.

    Paper: section 5.1
    """
    corpus = load_corpus(preset.corpus, data_dir)
    if preset.text == "moses-lowercase":
        corpus = moses_lowercased(corpus)
    count = preset.train_pairs
    train = Split(corpus.train.source[:count], corpus.train.target[:count])
    tokenizer = Tokenizer.train([*train.source, *train.target], preset.model.vocab_size)
    training = preset.training
    pairs = encode_pairs(tokenizer, train)
    return TokenBatches(pairs, training.batch_tokens, training.seed, training.max_length)


def random_batches(
    preset: Preset, mean_length: int = 28, batch_tokens: int | None = None, count: int = 50_000
) -> TokenBatches:
    """Make batches of random tokens, to measure a preset whose corpus is not at hand.

    A step costs what its lengths cost, whatever the tokens say. The lengths spread about as those
    of news and parliament do, with targets somewhat shorter or longer than their sources.

    Args:
        preset: the recipe.
        mean_length: tokens of a sentence; the default is a typical one for WMT's text.
        batch_tokens: of a batch; None for those of the preset.
        count: how many pairs to make.

    Raises:
        ValueError: if ``mean_length`` is below 2.
    """
    if mean_length < 2:
        raise ValueError(f"mean_length must be at least 2, got {mean_length}")
    training = preset.training
    budget = training.batch_tokens if batch_tokens is None else batch_tokens
    longest = min(budget, training.max_length or budget)
    random = np.random.default_rng(training.seed)
    source = random.gamma(2.5, mean_length / 2.5, count)
    target = source * random.uniform(0.8, 1.2, count)

    def sentences(lengths: np.ndarray) -> Sentences:
        lengths = lengths.round().clip(2, longest).astype(np.int64)
        ids = random.integers(3, preset.model.vocab_size, lengths.sum()).astype(np.int32)
        offsets = np.append(0, np.cumsum(lengths))
        ids[offsets[1:] - 1] = preset.model.eos_id
        return Sentences(ids, offsets)

    config = preset.model
    pairs = EncodedPairs(sentences(source), sentences(target), config.pad_id, config.bos_id)
    return TokenBatches(pairs, budget, training.seed, training.max_length)


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
