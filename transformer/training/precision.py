"""What a machine can do with half precision, said before the time is spent."""

import warnings
from pathlib import Path

from transformer.training.config import Precision

_PROCESSOR = Path("/proc/cpuinfo")


def require_precision(precision: Precision, device_type: str, processor: Path = _PROCESSOR) -> None:
    """Refuse a precision that a device cannot train in, and warn of one that it does slowly.

    A processor without units for bfloat16 turns every number into float32 and back, and is several
    times slower than in float32 (what Linux says of the processor is asked; elsewhere nothing is
    known, and nothing said).

    Args:
        precision: what training asks for.
        device_type: "cpu", "cuda" or another.
        processor: the file that describes the processor.

    Raises:
        ValueError: if "fp16" is asked for on a CPU.
    """
    if device_type != "cpu":
        return
    if precision == "fp16":
        raise ValueError('precision "fp16" needs a GPU; use "bf16" or "fp32" on a CPU')
    if precision == "bf16" and processor.exists() and "bf16" not in processor.read_text():
        warnings.warn(
            "this processor has no units for bfloat16: training in it will be several times "
            'slower than precision="fp32"',
            stacklevel=2,
        )
