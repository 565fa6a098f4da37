"""Choose a device: the best one of this machine, or the one that was asked for."""

import os
import warnings

import torch

_process = os.getpid()


def choose_device(name: str | None = None) -> torch.device:
    """Return a device after trying it.

    Args:
        name: "cpu", "cuda", "cuda:1", "mps" and so on; None for a GPU if there is one.

    Raises:
        ValueError: if this machine has no such device.
    """
    if name is None:
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"device must be one of this machine, got {name!r}: {reason}") from None


def device_label(device: torch.device) -> str:
    """Return a readable name, such as the model of a GPU."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"{device.type}, {threads} thread{'s' * (threads != 1)}"


def use_one_thread_after_fork() -> None:
    """Let PyTorch compute with one thread in a process that was forked, and say so, once.

    Its other threads stay in the parent; OpenMP of GNU, which PyTorch has on Linux, would wait for
    them for ever.
    """
    global _process
    if os.getpid() == _process:
        return
    _process = os.getpid()
    if torch.get_num_threads() > 1:
        torch.set_num_threads(1)
        warnings.warn(
            "this process was forked, and PyTorch's threads stayed behind: it translates with one "
            "thread from here on; torch.set_num_threads(1) in each worker says the same",
            stacklevel=3,
        )
