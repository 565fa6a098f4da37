"""Figures from records for the annotated paper and for the pages on scale and speed."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from generated import charts
from transformer.recipes.estimate import SENTENCE, size
from transformer.recipes.presets import get_preset
from transformer.recipes.record import hardware_of, read_record
from transformer.training.curve import duration
from transformer_book.speed import scale as sizes
from transformer_book.speed.comparison import RECORD, STEP_TIME, Row, speed_table
from transformer_book.speed.step_time import KINDS, StepTime
from transformer_book.speed.throughput import MEASUREMENTS, throughput_file
from transformer_book.statistics import paired_interval
from transformer_book.studies.left_out.study import Effect, final_effects
from transformer_book.studies.translation.recorded import recorded_runs
from transformer_book.tables import Table, significant

_EXPORT = RECORD.with_name("export.json")


def alternatives() -> dict[str, str]:
    """Say in a few words what each choice of chapter 23 changed, by its name."""
    return {name: describe_effect(effect) for name, effect in final_effects().items()}


def describe_effect(effect: Effect) -> str:
    """Give the mean gain in nats and in BLEU, each with its 95% interval, and a verdict."""

    def spread(gains: tuple[float, ...], digits: int, unit: str) -> str:
        numbers = sum(gains) / len(gains), *paired_interval(gains)
        mean, low, high = (f"{number:+z.{digits}f}" for number in numbers)
        return f"{mean} {unit} ({low} to {high})"

    gains = f"{spread(effect.nats, 2, 'nats')}, {spread(effect.bleu, 1, 'BLEU')}"
    return f"{gains}: [{effect.verdict}](../../notebooks/23_left_out.ipynb)"


def scale() -> dict[str, str]:
    """Compute the figures of the page on scale, by name."""
    record = read_record(sizes.RECORD)
    runs = [
        [
            run.what,
            _number(run.target_tokens),
            f"{run.flops:.1e}",
            *(duration(run.seconds(*gpu)) for gpu in (("A100",), ("H100",), ("H100", 8))),
        ]
        for run in sizes.planned_runs()
    ]
    text = [
        [
            _number(pairs),
            size(found.text_bytes),
            size(found.cache_bytes),
            duration(found.prepare_seconds),
            size(found.plan_bytes),
            _seconds(found.start_seconds),
        ]
        for pairs in (4.5e6, 36e6, 1e9)
        for found in [sizes.planned_text(pairs, record)]
    ]
    memory = [
        [preset.name, f"{count:,}", size(alone), size(sizes.memory(preset, 8)[1]), size(whole)]
        for preset in (get_preset("wmt14-base"), get_preset("wmt14-big"), sizes.large_preset())
        for count, alone, whole in [sizes.memory(preset)]
    ]
    measured = [
        [label, *(show(found) for found in record["pairs"].values())]
        for label, show in _MEASURED.items()
    ]
    head = ["", *(f"{_number(int(pairs))} pairs" for pairs in record["pairs"])]
    return {
        "runs": Table(
            ["Run", "Target tokens", "Operations", "One A100", "One H100", "Eight H100s"], runs
        ).markdown(),
        "text": Table(
            ["Pairs", "Text", "Token cache", "Prepared once", "Plan", "Start"], text
        ).markdown(),
        "memory": Table(
            ["Model", "Parameters", "One GPU", "Each of eight, sharded", "Saved state"], memory
        ).markdown(),
        "measured": Table(head, measured).markdown(),
        "machine": record["environment"]["hardware"]["cpu"],
        "half-residual": _half_residual(),
        "utilisation": f"{sizes.UTILISATION:.0%} of the peak in half precision ("
        + ", ".join(f"{rate / 1e12:.0f} TFLOP/s on an {gpu}" for gpu, rate in _PEAKS)
        + ")",
        "sentence": str(SENTENCE),
    } | _measured_step()


_PEAKS = sizes.PEAK_FLOPS.items()
_BASE = get_preset("wmt14-base")


def _measured_step() -> dict[str, str]:
    """Give the recorded time and memory of a step of the base model on a GPU."""
    record = read_record(throughput_file(_BASE))
    assert "H200" in record["device"]  # its data sheet has the rate of an H100
    seconds = record["seconds_per_step"]
    return {
        "measured-step": f"{1000 * seconds:.0f} ms",
        "measured-share": f"{record['flops_per_step'] / seconds / sizes.PEAK_FLOPS['H100']:.0%}",
        "measured-memory": size(record["peak_memory_bytes"]),
    }


def _half_residual() -> str:
    """Say what residual connections in bfloat16 changed in the recorded pairs of runs."""
    record = read_record(sizes.HALF_RESIDUAL)
    gaps = [
        pair["bf16 with half_residual"]["loss"] - pair["bf16"]["loss"] for pair in record["seeds"]
    ]
    numbers = sum(gaps) / len(gaps), *paired_interval(gaps)
    mean, low, high = (f"{number:+.3f}".replace("-", "−") for number in numbers)
    return (
        f"In {len(gaps)} pairs of runs of a small model ({record['recipe']['max_steps']} steps on "
        f"a CPU, without dropout), it changed the loss of the last {record['last_steps']} steps by "
        f"{mean} nats per token (95% interval over the seeds {low} to {high})"
    )


_MEASURED: dict[str, Callable[[Any], str]] = {
    "Text": lambda found: size(found["text_bytes"]),
    "Tokens, both sides": lambda found: _number(
        found["encode"]["source_tokens"] + found["encode"]["target_tokens"]
    ),
    "Token cache": lambda found: size(found["cache_bytes"]),
    "Learn 37,000 tokens, once": lambda found: _seconds(found["learn"]["cpu_seconds"]),
    "Encode, once": lambda found: _seconds(found["encode"]["cpu_seconds"]),
    "Memory while encoding": lambda found: _memory(found["encode"]),
    "Start again, to the first batch": lambda found: _seconds(found["start_again"]["cpu_seconds"]),
    "Memory then, mapped files included": lambda found: _memory(found["start_again"]),
}


def _memory(stage: Mapping[str, Any]) -> str:
    return size(stage["peak_bytes"] - stage["idle_bytes"])


def _number(count: float) -> str:
    for unit, name in ((1e9, "billion"), (1e6, "million")):
        if count >= unit:
            return f"{count / unit:,.3g} {name}"
    return f"{count:,.0f}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} seconds" if seconds < 10 else duration(seconds)


def speed() -> dict[str, str]:
    """Make the texts of the speed page, by name."""
    record, export, steps = (
        json.loads(path.read_text(encoding="utf-8")) for path in (RECORD, _EXPORT, STEP_TIME)
    )
    parts = {name: StepTime(**found) for name, found in steps["sizes"].items()}
    tables = {
        name: f"**{found['title']}**\n\n"
        + speed_table(found["unit"], [Row(**row) for row in found["rows"]]).markdown()
        for name, found in record["tables"].items()
    }
    return tables | {
        "like-for-like": _like_for_like(record["tables"]),
        "as-installed": _ratios(
            record["tables"],
            {f"{kind}, {layers}": f"train-{kind}" for kind, layers in _SIZES.items()},
            "Speed of training as installed, beside three libraries",
        ),
        "translation": _ratios(
            record["tables"],
            {
                "Greedy, 64 at a time": "translate-64-1",
                "Beam 4, 64 at a time": "translate-64-4",
                "Greedy, one at a time": "translate-1-1",
                "Beam 4, one at a time": "translate-1-4",
            },
            "Speed of translation with one thread",
        ),
        "machine": _machine(record),
        "export": _export(export).markdown(),
        "step": f"{step_table(parts).markdown()}\n{_machine(steps)}",
        "gpu": _on_gpus(),
        "gpu-blocks": _blocks(read_record(throughput_file(_BASE))),
        "gpu-small": _small_on_a_gpu(recorded_runs()),
    }


_SIZES = {"tiny": "4 × 128", "small": "3 × 256", "base": "6 × 512"}
_OURS, _ALIKE = "this package", "this package, MKL's products"
_RATIO = "speed of this package / speed of the other"


def _like_for_like(tables: Mapping[str, Any]) -> str:
    """Chart the ratio to each peer where both use the same matrix products and allocator."""
    parts = {}
    for kind, layers in _SIZES.items():
        tuned = f"train-{kind}-allocator" in tables
        found = tables[f"train-{kind}-allocator" if tuned else f"train-{kind}"]
        speeds = {row["name"]: row["median"] for row in found["rows"]}
        parts[f"{kind}, {layers}" + " (untuned)" * (not tuned)] = [
            charts.Row(name, speeds[_ALIKE] / speed)
            for name, speed in speeds.items()
            if name not in (_OURS, _ALIKE)
        ]
    chart = charts.chart(
        parts, _RATIO, "Speed of training on equal terms, beside three libraries", reference=1
    )
    spans = "; ".join(f"{part.partition(',')[0]}: {_span(rows)}" for part, rows in parts.items())
    return f"{chart}\nThe ratios are {spans}.\n"


def _span(rows: Iterable[charts.Row]) -> str:
    values = [row.value for row in rows]
    return f"{min(values):.2f} to {max(values):.2f}"


def _ratios(tables: Mapping[str, Any], names: Mapping[str, str], alt: str) -> str:
    """Chart the ratio to each peer in some tables, with its range over the rounds."""
    parts = {
        heading: [
            charts.Row(row["name"], row["ratio"], row["least"], row["most"])
            for row in tables[name]["rows"]
            if row["name"] not in (_OURS, _ALIKE)
        ]
        for heading, name in names.items()
    }
    return charts.chart(parts, _RATIO, alt, reference=1, log=True)


def step_table(steps: Mapping[str, StepTime]) -> Table:
    """Make the table of where the time of a training step goes, a column for each measurement."""
    rows = []
    for kind in KINDS:
        shares = [step.shares.get(kind, 0.0) for step in steps.values()]
        if any(shares):
            rows.append([kind, *(f"{share:.1%}" for share in shares)])
    seconds = [f"{significant(step.seconds_per_step, 3)}" for step in steps.values()]
    rates = [step.target_tokens_per_step / step.seconds_per_step for step in steps.values()]
    rows.append(["seconds per step", *seconds])
    rows.append(["target tokens per second", *(significant(rate, 3) for rate in rates)])
    return Table(["of a step", *steps], rows)


def _machine(record: Mapping[str, Any]) -> str:
    environment = record["environment"]
    hardware, libraries = environment["hardware"], environment["libraries"]
    return (
        f"{hardware['cpu']}, {hardware['cores']} cores; Python {environment['python']}, "
        f"PyTorch {libraries['torch']}; code {environment['code']}; `{record['command']}`."
    )


def _on_gpus() -> str:
    """Tables of the speed of the recipes on GPUs, and of where the time of their steps goes."""
    found = {
        name.removesuffix("-throughput"): record
        for name, record in recorded_runs(MEASUREMENTS).items()
        if record.get("kind") == "throughput" and not record["device"].startswith("cpu")
    }
    header = ["recipe", "GPU", "precision", "target tokens per second", "of measured peak"]
    header += ["memory", "ms per step", "all its steps"]
    rows = []
    for name, record in found.items():
        rate, share = record["target_tokens_per_second"], record["utilisation"]
        steps = record["preset"]["training"]["max_steps"]
        rows.append(
            [
                name,
                record["device"],
                record["precision"],
                significant(rate, 3),
                "" if share is None else f"{share:.0%}",
                size(record["peak_memory_bytes"]),
                significant(1000 * record["seconds_per_step"], 3),
                duration(steps * record["seconds_per_step"]),
            ]
        )
    parts = {name: StepTime(**r["step_time"]) for name, r in found.items() if "step_time" in r}
    tables = [Table(header, rows)] + ([step_table(parts)] if parts else [])
    command = "python -m transformer_book.speed.throughput"
    machines = (_machine(r | dict(command=f"{command} {name}")) for name, r in found.items())
    return "\n".join([*(table.markdown() for table in tables), *machines])


def _blocks(record: Mapping[str, Any]) -> str:
    """Say how far the speed of a measurement varies between its blocks of steps."""
    rates = record["target_tokens_per_second_of_blocks"]
    low, high = (significant(rate, 3) for rate in (min(rates), max(rates)))
    return f"{len(rates)} blocks of {record['steps'] // len(rates)} steps, at {low} to {high}"


def _small_on_a_gpu(runs: Mapping[str, dict[str, Any]]) -> str:
    """Say how long the smallest recipe takes on a GPU and on a CPU."""
    on_gpu, on_cpu = runs["multi30k-tiny-seed1"], runs["multi30k-tiny-bf16-seed1"]
    training = on_gpu["preset"]["training"]
    batches = on_gpu["steps"] * training["accumulate"]
    return (
        f"Training `{on_gpu['preset']['name']}` ({on_gpu['parameters'] / 1e6:.1f} million "
        f"parameters) took {on_gpu['minutes']:.1f} minutes in float32 on one {hardware_of(on_gpu)}"
        f", or {60_000 * on_gpu['minutes'] / batches:.0f} ms per batch of up to "
        f"{training['batch_tokens']:,} tokens, and {on_cpu['minutes']:.0f} minutes in bfloat16 on "
        "two CPU cores"
    )


def _export(record: Mapping[str, Any]) -> Table:
    """BLEU of the exported model by search, and how many translations stayed the same."""
    header = ["search", "BLEU here", "in CTranslate2, float32", "in CTranslate2, int8"]
    header += [f"identical, of {record['pairs']:,}"]
    rows = []
    for search, found in record["searches"].items():
        scores = [f"{found[kind]['bleu']:.2f}" for kind in ("ours", "float32", "int8")]
        equal = f"float32 {found['float32']['equal']}, int8 {found['int8']['equal']}"
        rows.append([search, *scores, equal])
    return Table(header, rows)
