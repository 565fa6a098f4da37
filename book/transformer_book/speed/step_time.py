"""Where the time of a training step went, as PyTorch's profiler recorded it."""

from dataclasses import dataclass

from transformer.training.config import Precision

#: Kinds of operations, in the order of the table; "nothing at work" is Python or an idle GPU.
KINDS = (
    "matrix products", "attention core", "vocabulary loss", "dropout", "layer norm", "optimizer",
    "copies and padding", "fused by the compiler", "the rest", "nothing at work",
)  # fmt: skip


@dataclass(frozen=True)
class StepTime:
    """Where the time of a training step goes."""

    device: str
    precision: Precision
    steps: int  #: number of profiled steps
    seconds_per_step: float  #: without the profiler; CPU seconds where a single thread works
    target_tokens_per_step: float  #: without padding
    kinds: dict[str, float]  #: profiled seconds per step of those of :data:`KINDS` that took time

    @property
    def shares(self) -> dict[str, float]:
        """Share of each kind, largest first; they add up to 1."""
        total, ordered = sum(self.kinds.values()), sorted(self.kinds.items(), key=lambda i: -i[1])
        return {kind: seconds / total for kind, seconds in ordered}
