"""The cost of runs of other sizes, computed from the operations of a model and one measurement."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from transformer.model.config import TransformerConfig
from transformer.recipes.estimate import SENTENCE, requirements, training_flops
from transformer.recipes.presets import Preset, get_preset
from transformer.recipes.record import read_record

#: Measurements on a text of millions of pairs.
RECORD = Path(__file__).parent / "scale.json"

#: What residual connections in bfloat16 do to the loss of a small model.
HALF_RESIDUAL = RECORD.with_name("half_residual.json")

#: Operations per second in half precision, dense, from the manufacturers' data sheets.
PEAK_FLOPS = {"A100": 312e12, "H100": 989e12}

#: Assumed share of the peak that training reaches. Small models on large GPUs reach less.
UTILISATION = 0.25

# Bytes of the token cache per pair, besides 2 per token: two offsets, its place in the order of
# lengths, and the two lengths.
_BYTES_PER_PAIR = 2 * 8 + 8 + 2 * 4


@dataclass(frozen=True)
class PlannedRun:
    """A run on paper."""

    what: str  #: in words
    config: TransformerConfig
    target_tokens: float | int  #: with repeats; as many source tokens are assumed

    @property
    def flops(self) -> float:
        """Operations of the matrix products of the whole run."""
        return self.target_tokens / SENTENCE * training_flops(self.config, SENTENCE, SENTENCE)

    def seconds(self, gpu: str, count: int = 1) -> float:
        """Compute the duration on ``count`` GPUs of :data:`PEAK_FLOPS` that lose no time."""
        return self.flops / (count * UTILISATION * PEAK_FLOPS[gpu])


def planned_runs() -> list[PlannedRun]:
    """Return one pass over a large text from the web, with two sizes of model."""
    runs = []
    for name, preset in (("big", get_preset("wmt14-big")), ("large", large_preset())):
        assert isinstance(preset.model, TransformerConfig)
        runs.append(PlannedRun(f"{name}, a billion pairs", preset.model, 1e9 * SENTENCE))
    return runs


def large_preset() -> Preset:
    """Return a recipe beyond the paper: big, twice as wide and deep."""
    big = get_preset("wmt14-big")
    wide = dict(d_model=2048, d_ff=8192, num_heads=32, num_layers=12)
    model = TransformerConfig.from_dict(big.model.to_dict() | wide)
    return replace(big, name="large", model=model)


@dataclass(frozen=True)
class PlannedText:
    """Disk, memory and time of a text, in proportion to one that was measured."""

    text_bytes: float
    cache_bytes: float | int  #: of its tokens
    prepare_seconds: float  #: to learn the tokenizer and encode, on one core
    plan_bytes: float  #: main memory of each process for the plan of an epoch
    start_seconds: float  #: to the first batch, once everything is in the cache


def planned_text(pairs: float | int, record: dict[str, Any] | None = None) -> PlannedText:
    """Scale the measurement to a text of so many pairs, of WMT's mean length on either side.

    ``record`` replaces the one that comes with the package.
    """
    sizes = (read_record(RECORD) if record is None else record)["pairs"]
    measured = int(max(sizes, key=int))
    found = sizes[str(measured)]
    tokens = 2 * SENTENCE * pairs
    by_token = tokens / (found["encode"]["source_tokens"] + found["encode"]["target_tokens"])
    by_pair = pairs / measured
    start = found["start_again"]
    return PlannedText(
        text_bytes=by_token * found["text_bytes"],
        cache_bytes=2 * tokens + _BYTES_PER_PAIR * pairs,
        prepare_seconds=by_token * (found["learn"]["cpu_seconds"] + found["encode"]["cpu_seconds"]),
        plan_bytes=by_pair * (start["peak_bytes"] - start["idle_bytes"]),
        start_seconds=by_pair * start["cpu_seconds"],
    )


def memory(preset: Preset, processes: int = 1) -> tuple[int, float, int]:
    """Return parameters, bytes on each GPU, and bytes of the whole training state of a preset.

    ``processes`` GPUs share the weights, the gradients and Adam's moments.
    """
    needs = requirements(preset, on_gpu=True)
    assert needs.device_memory is not None  # a Transformer
    shared = 16 * needs.parameters
    each = needs.device_memory - shared + shared / processes
    return needs.parameters, each, 12 * needs.parameters
