"""What runs of other sizes would cost: arithmetic on paper, from the model's and one measurement.

Paper: sections 5.1 and 5.2
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from transformer.model.config import TransformerConfig
from transformer.recipes.cost import training_flops
from transformer.recipes.presets import Preset, get_preset
from transformer.recipes.record import read_record
from transformer.recipes.requirements import requirements

#: What tools/record_scale.py measured on a text of millions of pairs.
RECORD = Path(__file__).parent / "scale.json"

#: Products of half-precision matrices a second, as the makers' data sheets give them (dense).
PEAK_FLOPS = {"A100": 312e12, "H100": 989e12}

#: Share of the peak that training reaches. An assumption; small models on large GPUs reach less.
UTILISATION = 0.35

#: Tokens of a sentence of the news text that the paper trained on, on either side.
SENTENCE = 26

#: Bytes of the token cache for a pair, beside 2 for each token; where its sentences end, its place
#: in the order of lengths, and the two lengths.
BYTES_A_PAIR = 2 * 8 + 8 + 2 * 4


@dataclass(frozen=True)
class PlannedRun:
    """A run on paper.

    Args:
        what: in words.
        config: the model.
        target_tokens: that training sees, repeats included; as many source tokens are assumed.

    Paper: section 5.2
    """

    what: str
    config: TransformerConfig
    target_tokens: float | int

    @property
    def flops(self) -> float:
        """Operations of the matrix products of the whole run.

        Paper: section 6.1 (training cost)
        """
        pair = training_flops(self.config, SENTENCE, SENTENCE)
        return self.target_tokens / SENTENCE * pair

    def seconds(self, gpu: str, count: int = 1) -> float:
        """How long it takes, if nothing is lost between GPUs.

        Args:
            gpu: one of :data:`PEAK_FLOPS`.
            count: how many of them.

        Paper: section 5.2
        """
        return self.flops / (count * UTILISATION * PEAK_FLOPS[gpu])


def planned_runs() -> list[PlannedRun]:
    """Return the paper's two runs, and one pass over a text from the web.

    Paper: section 5.2
    """
    base, big = (get_preset(f"wmt14-{size}") for size in ("base", "big"))
    runs = [
        PlannedRun(f"{name}, {preset.training.max_steps:,} steps", _sizes(preset), _tokens(preset))
        for name, preset in (("base", base), ("big", big))
    ]
    web = 1e9 * SENTENCE
    return [
        *runs,
        PlannedRun("big, one pass over a billion pairs", _sizes(big), web),
        PlannedRun("large, one pass over a billion pairs", _sizes(large_preset()), web),
    ]


def _sizes(preset: Preset) -> TransformerConfig:
    assert isinstance(preset.model, TransformerConfig)
    return preset.model


def large_preset() -> Preset:
    """Return a recipe that the paper does not have: big, twice as wide and deep."""
    big = get_preset("wmt14-big")
    wide = dict(d_model=2048, d_ff=8192, num_heads=32, num_layers=12)
    model = TransformerConfig.from_dict(big.model.to_dict() | wide)
    return replace(big, name="large", model=model)


def _tokens(preset: Preset) -> int:
    training = preset.training
    return training.max_steps * training.batch_tokens * training.accumulate


@dataclass(frozen=True)
class PlannedText:
    """What a text of some size takes, in proportion to one that was measured.

    Args:
        pairs: of sentences.
        text_bytes: disk for the text.
        cache_bytes: disk for its tokens, 2 bytes each.
        prepare_seconds: to learn the tokenizer and encode, on one core.
        plan_bytes: main memory of each process for the plan of an epoch.
        start_seconds: from the start to the first batch, once all is in the cache.

    Paper: section 5.1
    """

    pairs: float | int
    text_bytes: float | int
    cache_bytes: float | int
    prepare_seconds: float | int
    plan_bytes: float | int
    start_seconds: float | int


def planned_text(pairs: float | int, record: dict[str, Any] | None = None) -> PlannedText:
    """Work out what a text takes: by its tokens what is done a token, by its pairs the rest.

    Args:
        pairs: of :data:`SENTENCE` tokens on either side.
        record: None for the one that comes with the package.

    Paper: section 5.1
    """
    sizes = (read_record(RECORD) if record is None else record)["pairs"]
    measured = int(max(sizes, key=int))
    found = sizes[str(measured)]
    tokens = 2 * SENTENCE * pairs
    by_token = tokens / (found["encode"]["source_tokens"] + found["encode"]["target_tokens"])
    by_pair = pairs / measured
    start = found["start_again"]
    return PlannedText(
        pairs=pairs,
        text_bytes=by_token * found["text_bytes"],
        cache_bytes=2 * tokens + BYTES_A_PAIR * pairs,
        prepare_seconds=by_token * (found["learn"]["cpu_seconds"] + found["encode"]["cpu_seconds"]),
        plan_bytes=by_pair * (start["peak_bytes"] - start["idle_bytes"]),
        start_seconds=by_pair * start["cpu_seconds"],
    )


def memory(preset: Preset, processes: int = 1) -> tuple[int, float, int]:
    """Return parameters, bytes on each GPU when they are shared out, and bytes of the whole state.

    Args:
        preset: whose training is estimated.
        processes: that share out weights, gradients and Adam's moments; 1 shares nothing out.

    Paper: section 5.1
    """
    needs = requirements(preset, on_gpu=True)
    if needs.device_memory is None:
        raise ValueError(f"cannot estimate the memory of {preset.name}")
    shared = 16 * needs.parameters
    each = needs.device_memory - shared + shared / processes
    return needs.parameters, each, 12 * needs.parameters
