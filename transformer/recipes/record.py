"""Records of runs: recipe, environment and results in one JSON file."""

import gzip
import importlib.metadata
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import torch

from transformer import __version__
from transformer.data.lines import unpack_gzip
from transformer.saving.files import read_json, write_atomically, write_json

LIBRARIES = ("torch", "numpy", "accelerate", "tokenizers", "sacrebleu", "safetensors")


def describe_environment(processes: int = 1) -> dict[str, Any]:
    """Name code, hardware and libraries; ``processes`` train together, each on its own device."""
    cuda = torch.cuda.is_available()
    return dict(
        code=_code_version(),
        hardware=dict(
            device=torch.cuda.get_device_name() if cuda else "cpu",
            devices=processes,
            cpu=_cpu_name(),
            cores=os.cpu_count(),
            threads=torch.get_num_threads(),
        ),
        python=platform.python_version(),
        libraries={name: importlib.metadata.version(name) for name in LIBRARIES},
    )


def write_record(path: Path | str, record: dict[str, Any]) -> Path:
    """Write a record; a crash leaves the old file or the new one, never half of one."""
    write_json(Path(path), record, indent=1)
    return Path(path)


def read_record(path: Path | str) -> dict[str, Any]:
    """Read a recorded run; ValueError if the file does not hold one JSON object."""
    record = read_json(Path(path))
    if not isinstance(record, dict):
        raise ValueError(f"{path} is not a recorded run: it holds a {type(record).__name__}")
    return record


def recorded_preset(record: dict[str, Any]) -> dict[str, Any]:
    """Return the recipe of a recorded run, as a single process would run it.

    Its "accumulate" counts the batches that all processes take in a step.
    """
    preset = record.get("preset", {})
    processes = record.get("environment", {}).get("hardware", {}).get("devices", 1)
    if processes == 1:
        return preset
    training = preset["training"]
    return preset | dict(training=training | dict(accumulate=training["accumulate"] * processes))


def recorded_command(record: dict[str, Any]) -> str | None:
    """Return the command that repeats a recorded run, in as many processes; None if none does."""
    command, hardware = record.get("command"), record["environment"]["hardware"]
    if command is None or hardware["devices"] == 1:
        return command
    cpu = "ACCELERATE_USE_CPU=true " * (hardware["device"] == "cpu")
    launch = f"torchrun --nproc-per-node {hardware['devices']} -m transformer.cli"
    return f"{cpu}{launch}{command.removeprefix('transformer')}"


def hardware_of(record: dict[str, Any]) -> str:
    """Name the hardware of a recorded run, such as "8 × NVIDIA H100".

    A run that was resumed elsewhere has, say, "NVIDIA H100, from step 5,000 on AMD EPYC, 1 thread".
    """
    first, *later = record.get("parts", [record])
    text = name = _hardware_name(first)
    for part in later:
        if _hardware_name(part) != name:  # otherwise, the code alone may differ
            name = _hardware_name(part)
            text += f", from step {part['from_step']:,} on {name}"
    return text


def write_translations(path: Path | str, translations: dict[str, list[str]]) -> Path:
    """Write the translations of a run, by test split, so that they can be scored again."""
    text = json.dumps(translations, ensure_ascii=False, indent=0).encode()
    packed = gzip.compress(text, mtime=0)  # the same translations make the same file
    write_atomically(Path(path), lambda p: p.write_bytes(packed))
    return Path(path)


def read_translations(path: Path | str) -> dict[str, list[str]]:
    """Read what :func:`write_translations` wrote; ValueError if the file is damaged."""
    try:
        translations = json.loads(unpack_gzip(Path(path).read_bytes(), str(path)))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} holds no translations: {error}") from None
    if not isinstance(translations, dict):
        raise ValueError(f"{path} holds no translations: it has no test splits")
    return translations


def _hardware_name(part: dict[str, Any]) -> str:
    hardware = part["environment"]["hardware"]
    count, device = hardware["devices"], hardware["device"]
    if device == "cpu":
        threads = count * hardware["threads"]
        return f"{hardware['cpu']}, {threads} thread{'s' * (threads > 1)}"
    return device if count == 1 else f"{count} × {device}"


def _code_version() -> str:
    """Return the package's version and, in a git checkout of it, the commit.

    The commit is "dirty" if Python files of the package differ from it. Records and pages do not
    count, so that a recording which has written its record continues as the same version.
    """
    # The environment may lie inside another project's repository.
    if _git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return __version__
    commit = _git("describe", "--always", "--abbrev=12")
    if commit is None:
        return __version__
    changed = _git("status", "--porcelain", "--", "../*.py")
    return f"{__version__} ({commit}{'-dirty' * (changed != '')})"


def _git(*arguments: str) -> str | None:
    """Return the output of a git command in this folder; None if it fails."""
    command = ["git", "--no-optional-locks", "-C", str(Path(__file__).parent), *arguments]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
