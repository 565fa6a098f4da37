"""The page on scale: its prose is written on the page, its figures are worked out.

What ``<!-- figure NAME -->`` opens and ``<!-- end -->`` closes is written anew.
"""

from typing import Any

from transformer.lab.speed import scale
from transformer.recipes.cost import hardware_flops
from transformer.recipes.presets import get_preset
from transformer.recipes.record import read_record
from transformer.recipes.requirements import duration, size


def figures() -> dict[str, str]:
    """Work out all figures of the page, by name, as Markdown."""
    record = read_record(scale.RECORD)
    return {
        "runs": _table(
            ["Run", "Target tokens", "Operations", "One A100", "One H100", "Eight H100"],
            [
                [
                    run.what,
                    _number(run.target_tokens),
                    f"{run.flops:.1e}",
                    *(duration(run.seconds(*gpu)) for gpu in (("A100",), ("H100",), ("H100", 8))),
                ]
                for run in scale.planned_runs()
            ],
        ),
        "text": _table(
            ["Pairs", "Text", "Token cache", "Prepared once", "Plan", "Start"],
            [
                [
                    _number(pairs),
                    size(text.text_bytes),
                    size(text.cache_bytes),
                    duration(text.prepare_seconds),
                    size(text.plan_bytes),
                    _seconds(text.start_seconds),
                ]
                for pairs in (4.5e6, 36e6, 1e9)
                for text in [scale.planned_text(pairs, record)]
            ],
        ),
        "memory": _table(
            ["Model", "Parameters", "One GPU", "Each of eight, shared out", "Whole state"],
            [
                [preset.name, f"{count:,}", size(alone), size(shared), size(whole)]
                for preset in (
                    get_preset("wmt14-base"),
                    get_preset("wmt14-big"),
                    scale.large_preset(),
                )
                for count, alone, whole in [scale.memory(preset)]
                for shared in [scale.memory(preset, 8)[1]]
            ],
        ),
        "measured": _table(
            ["", *(_number(int(pairs)) + " pairs" for pairs in record["pairs"])],
            [
                [label, *(show(found) for found in record["pairs"].values())]
                for label, show in _MEASURED.items()
            ],
        ),
        "machine": record["environment"]["hardware"]["cpu"],
        "utilisation": f"{scale.UTILISATION:.0%}",
        "sentence": str(scale.SENTENCE),
        "paper-share": f"{scale.planned_runs()[0].flops / hardware_flops(12):.0%}",
    }


def _stage(name: str, field: str) -> Any:
    return lambda found: _seconds(found[name][field])


def _memory(name: str) -> Any:
    return lambda found: size(found[name]["peak_bytes"] - found[name]["idle_bytes"])


_MEASURED: dict[str, Any] = {
    "Text": lambda found: size(found["text_bytes"]),
    "Tokens, both sides": lambda found: _number(
        found["encode"]["source_tokens"] + found["encode"]["target_tokens"]
    ),
    "Token cache": lambda found: size(found["cache_bytes"]),
    "Learn 37,000 tokens, once": _stage("learn", "cpu_seconds"),
    "Encode, once": _stage("encode", "cpu_seconds"),
    "Memory while encoding": _memory("encode"),
    "Start again, to the first batch": _stage("start_again", "cpu_seconds"),
    "Memory then, mapped files included": _memory("start_again"),
}


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n\n"


def _number(count: float | int) -> str:
    for unit, name in ((1e9, "billion"), (1e6, "million")):
        if count >= unit:
            return f"{count / unit:,.3g} {name}"
    return f"{count:,.0f}"


def _seconds(seconds: float | int) -> str:
    return f"{seconds:.1f} seconds" if seconds < 10 else duration(seconds)
