"""Recorded runs: what was run, on what, and what came out, as one JSON file.

Paper: not in the paper
"""

import importlib.metadata
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import torch

from transformer.training.checkpoint import write_atomically

LIBRARIES = ("torch", "numpy", "accelerate", "tokenizers", "sacrebleu", "safetensors")


def describe_environment() -> dict[str, Any]:
    """Name the code, the hardware and the libraries of this process.

    Paper: section 5.2
    """
    cuda = torch.cuda.is_available()
    return dict(
        code=_code_version(),
        hardware=dict(
            device=torch.cuda.get_device_name() if cuda else "cpu",
            devices=torch.cuda.device_count() if cuda else 1,
            cpu=_cpu_name(),
            cores=os.cpu_count(),
            threads=torch.get_num_threads(),
        ),
        python=platform.python_version(),
        libraries={name: importlib.metadata.version(name) for name in LIBRARIES},
    )


def write_record(path: Path | str, record: dict[str, Any]) -> Path:
    """Write a record, replacing an older one only when the new one is whole.

    Raises:
        OSError: if the file cannot be written.

    Paper: not in the paper
    """
    path = Path(path)
    text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    write_atomically(path, lambda p: p.write_text(text, encoding="utf-8"))
    return path


def read_record(path: Path | str) -> dict[str, Any]:
    """Read a recorded run.

    Raises:
        FileNotFoundError: if there is none.
        ValueError: if the file is not JSON.

    Paper: not in the paper
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not a recorded run: {error}") from None


def _code_version() -> str:
    """Return the package's version and, in a git checkout, the commit."""
    try:
        version = importlib.metadata.version("transformer-book")
    except importlib.metadata.PackageNotFoundError:
        version = "not installed"
    folder = Path(__file__).parent
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return version
    return f"{version} ({commit.stdout.strip()})" if commit.returncode == 0 else version


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
