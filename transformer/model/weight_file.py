"""Weight files that notice their own damage: safetensors with a checksum in the header.

The format itself has none: a bit that flips on a disk is loaded in silence as another weight.
"""

import zlib
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

#: Name of the checksum in the header. Files of other programs have none, and are read without.
CHECKSUM = "crc32"


def checksum(weights: Mapping[str, Tensor]) -> str:
    """Compute the CRC-32 of names, types, shapes and numbers, whatever the order of the names.

    Args:
        weights: tensors by name.

    Returns:
        8 hexadecimal digits.
    """
    crc = 0
    for name in sorted(weights):
        tensor = weights[name].detach().cpu().contiguous()
        crc = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), crc)
        crc = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, crc)
    return f"{crc:08x}"


def read_weight_file(path: Path | str) -> dict[str, Tensor]:
    """Read all tensors of a safetensors file, and compare them with its checksum if it has one.

    Args:
        path: of the file.

    Returns:
        The tensors by name, on the CPU.

    Raises:
        ValueError: if the file is damaged.
        OSError: if it cannot be read.
    """
    try:
        with safe_open(path, "pt") as file:
            expected = (file.metadata() or {}).get(CHECKSUM)
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except OSError:
        raise
    except Exception as error:  # a header of strange numbers makes torch itself complain
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{path} is not a whole safetensors file: {reason}") from None
    if expected is not None and expected != checksum(weights):
        raise ValueError(
            f"{path} is damaged: its content is not that of its checksum; "
            f"take a copy of it, or remove it and do without"
        )
    return weights


def stored_shapes(path: Path | str) -> dict[str, tuple[int, ...]]:
    """Read the shapes of the tensors in a safetensors file, and nothing else of it.

    Raises:
        ValueError: if the file is no safetensors file, or claims more than it holds.
        OSError: if it cannot be read.
    """
    try:
        with safe_open(path, "pt") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{path} is not a whole safetensors file: {reason}") from None
