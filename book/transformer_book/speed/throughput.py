"""How fast a preset trains on this machine, and which share of the device's speed that uses.

python -m transformer_book.speed.throughput mixture-base wmt14-base
"""

import argparse
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any

import torch

from transformer.data.batching import Batch, TokenBatches, padding_waste
from transformer.inference.device import device_label
from transformer.model.config import TransformerConfig
from transformer.recipes.architectures import architecture, build_model
from transformer.recipes.cards import on_this_card
from transformer.recipes.estimate import random_batches, training_flops
from transformer.recipes.presets import Preset, get_preset
from transformer.recipes.record import describe_environment, write_record
from transformer.training.config import Precision
from transformer.training.curve import read_curve
from transformer.training.stream import step_batches
from transformer.training.trainer import Trainer

#: Measurements that the speed page shows, one record per preset.
MEASUREMENTS = Path(__file__).parent / "measurements"

#: Pairs of random tokens: as in a real text, so many that batches of similar lengths have little
#: padding.
PAIRS = 2_000_000
_TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def measure_throughput(
    preset: Preset, batches: TokenBatches, text: str, blocks: int = 5, steps: int = 20
) -> dict[str, Any]:
    """Time blocks of steps of the real training loop; the record names their ``text``."""
    total = (2 + blocks) * steps
    rare: dict[str, Any] = dict.fromkeys(("max_steps", "validate_every", "save_every"), total)
    config = replace(preset.training, log_every=steps, **rare)
    torch.manual_seed(config.seed)
    with TemporaryDirectory() as folder:
        trainer = Trainer(build_model(preset.model), batches, config, folder, progress=False)
        device, precision = trainer.accelerator.device, trainer.precision
        on_gpu = device.type == "cuda"
        if on_gpu:
            torch.cuda.reset_peak_memory_stats(device)
        if not trainer.fit():
            raise InterruptedError("the measurement was interrupted")
        curve = read_curve(Path(folder) / "curve.jsonl")
        rates = [line["tokens_per_second"] for line in curve if "tokens_per_second" in line][2:]
        peak = torch.cuda.max_memory_allocated(device) if on_gpu else None
    stream = islice(step_batches(batches, config.accumulate), 2 * steps, total)
    groups = [step.batches for step in stream]
    timed = [batch for group in groups for batch in group]
    tokens = [sum(batch.num_target_tokens for batch in group) for group in groups]
    per_block = [sum(tokens[i : i + steps]) for i in range(0, len(tokens), steps)]
    seconds = median(n / rate for n, rate in zip(per_block, rates, strict=True)) / steps
    flops, utilisation, rate = None, None, matrix_rate(device, precision)
    if isinstance(preset.model, TransformerConfig):
        flops = sum(batch_flops(preset.model, batch) for batch in timed) / len(groups)
        utilisation = flops / seconds / rate
    return dict(
        kind="throughput",
        preset=preset.to_dict(),
        architecture=architecture(preset.model),
        text=text,
        device=device_label(device),
        precision=precision,
        steps=len(groups),
        seconds_per_step=seconds,
        target_tokens_per_second=mean(tokens) / seconds,
        target_tokens_per_second_of_blocks=rates,
        target_tokens_per_step=mean(tokens),
        padding=padding_waste(timed),
        flops_per_step=flops,
        matrix_flops_per_second=rate,
        utilisation=utilisation,
        peak_memory_bytes=peak,
        environment=describe_environment(),
    )


def batch_flops(config: TransformerConfig, batch: Batch) -> float:
    """Count the operations of the matrix products of a step on one batch, without padding."""
    source = (batch.source != config.pad_id).sum(dim=1).tolist()
    target = (batch.labels != config.pad_id).sum(dim=1).tolist()
    return sum(training_flops(config, *lengths) for lengths in zip(source, target, strict=True))


def matrix_rate(device: torch.device, precision: Precision = "fp32") -> float:
    """Measure the best rate of large square matrix products, in operations per second."""
    on_gpu, best = device.type == "cuda", 0.0
    for size in (4096, 8192, 16384) if on_gpu else (512, 1024):
        a, b = (torch.randn(size, size, device=device).to(_TYPES[precision]) for _ in range(2))
        out = a @ b  # chooses a kernel
        for _ in range(5):
            if on_gpu:
                torch.cuda.synchronize(device)
            started = time.perf_counter()
            for _ in range(3):
                torch.mm(a, b, out=out)
            if on_gpu:
                torch.cuda.synchronize(device)
            best = max(best, 3 * 2 * size**3 / (time.perf_counter() - started))
    return best


def throughput_file(preset: Preset, folder: Path = MEASUREMENTS) -> Path:
    """Return the file of a preset's record."""
    return folder / f"{preset.name}-throughput.json"


def record_throughput(preset: Preset, folder: Path = MEASUREMENTS) -> Path:
    """Measure a preset on random tokens, and return the file of the record."""
    batches = random_batches(preset, count=PAIRS)
    record = measure_throughput(preset, batches, "random tokens, 28 per sentence")
    return write_record(throughput_file(preset, folder), record)


def main() -> None:
    """Measure presets and write their records."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("presets", nargs="*", default=["mixture-base", "wmt14-base", "wmt14-big"])
    parser.add_argument("--output", type=Path, default=MEASUREMENTS, help="folder of the records")
    options = parser.parse_args()
    for name in options.presets:
        print(record_throughput(on_this_card(get_preset(name)), options.output))


if __name__ == "__main__":
    main()
