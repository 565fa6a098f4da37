"""Choose a device: the best one of this machine, or the one that was asked for."""

import torch


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
