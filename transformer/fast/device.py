"""What PyTorch needs on a GPU before it trains or translates, and whether it can compile there."""

import os
import shutil
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

# Where PyTorch's compiler looks: Triton for C, the C++ backend of a CPU for C++.
_COMPILERS = {
    "cuda": ("CC", "gcc clang cl" if sys.platform == "win32" else "gcc clang"),
    "cpu": ("CXX", {"win32": "cl", "darwin": "clang++"}.get(sys.platform, "g++")),
}


def set_up(device: torch.device) -> None:
    """Choose the attention kernels of a device; call it before the first step on that device.

    On CUDA this switches off cuDNN's attention, for the whole process. PyTorch prefers it on recent
    GPUs, but it plans anew for each new shape, and batches of translation pairs have thousands of
    shapes. Graphs that were compiled before contain the old choice, and are compiled again.
    """
    if device.type != "cuda" or not torch.backends.cuda.cudnn_sdp_enabled():
        return
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.compiler.reset()
    settings: Any = getattr(torch.compiler, "config", None)  # since PyTorch 2.7
    if hasattr(settings, "cache_key_tag"):  # the compiler's files do not depend on the switch
        settings.cache_key_tag = f"{settings.cache_key_tag} without cuDNN attention".strip()


def missing_for_compiling(device_type: str) -> str | None:
    """Name what ``torch.compile`` lacks on this machine for "cuda", "cpu" or another device.

    None if nothing is missing, or for a device that needs no compiler.
    """
    if device_type not in _COMPILERS:
        return None
    if device_type == "cuda":
        if find_spec("triton") is None:
            return "Triton (pip install triton)"
        if torch.cuda.is_available() and torch.cuda.get_device_capability() < (7, 0):
            return "a GPU of compute capability 7.0 or above"  # Triton makes no kernels below it
    variable, usual = _COMPILERS[device_type]
    chosen = os.environ.get(variable)
    if not any(map(shutil.which, [chosen] if chosen else usual.split())):
        kind = "C" if device_type == "cuda" else "C++"
        named = f": {variable} is {chosen!r}" if chosen else " (apt install g++)"
        return f"a {kind} compiler{named}"
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        return "the headers of Python (apt install python3-dev)"
    return None
