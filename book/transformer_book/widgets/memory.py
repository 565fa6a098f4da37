"""The memory of a training step, piece by piece, as the sequence grows."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from transformer_book.palette import COLOURS, ROLES
from transformer_book.widgets.base import Explorer


class MemoryExplorer(Explorer):
    """Memory of the encoder layers in a training step, for a length and ways to save memory."""

    kind = "memory-explorer"
    size = (6.4, 2.8)

    def __init__(
        self,
        layers: int,
        d_model: int,
        d_ff: int,
        num_heads: int,
        parameters: int,  # of all layers
        power: int = 11,  # of two: the length that is shown first
    ):
        if not 5 <= power <= 15:
            raise ValueError(f"power must be in 5..15, got {power}")
        self.layers, self.d_model, self.d_ff, self.num_heads = layers, d_model, d_ff, num_heads
        self.parameters, self.power = parameters, power
        said = ", ".join(
            f"{2**each:,} tokens: {sum(self.pieces(2**each).values()) / 1e9:.1f} GB"
            for each in (5, 8, 11, 14)
        )
        self.alt = (
            f"Memory of {layers} encoder layers while they train on one sequence: parameters with "
            f"gradients and optimizer state, activations, and attention weights. {said}."
        )

    def pieces(
        self,
        length: int,
        sequences: int = 1,
        parts: int = 1,  # whose gradients are accumulated
        fused: bool = False,  # attention weights are never stored
        checkpointing: bool = False,  # only inputs are stored, and one layer
        half: bool = False,  # 16 bits per activation
    ) -> dict[str, int]:
        """Return the bytes of each piece."""
        size = (2 if half else 4) * sequences // parts
        # Per token: inputs of the products, of the norms and of the ReLU, and dropout masks.
        vectors = (10 * self.d_model + self.d_ff) * length * size
        squares = self.num_heads * length * (1 if fused else length) * size
        inputs = self.layers * self.d_model * length * size
        times = 1 if checkpointing else self.layers
        return {
            "parameters, gradients, Adam": 16 * self.parameters,
            "activations": times * vectors + (inputs if checkpointing else 0),
            "row sums" if fused else "attention weights": times * squares,
        }

    def payload(self) -> dict[str, Any]:
        """Collect the sizes."""
        return {
            "title": f"Memory of a training step, {self.layers} encoder layers",
            "layers": self.layers,
            "dModel": self.d_model,
            "dFf": self.d_ff,
            "heads": self.num_heads,
            "parameters": self.parameters,
            "power": self.power,
        }

    def draw(self, figure: Figure) -> None:
        """Draw the pieces of four lengths as bars."""
        axes = figure.subplots()
        powers = (5, 8, 11, 14)
        places = np.arange(len(powers))
        start = np.zeros(len(powers))
        found = [self.pieces(2**power) for power in powers]
        for name, colour in zip(found[0], (COLOURS["grey"], *_COLOURS), strict=True):
            sizes = np.array([each[name] for each in found]) / 1e9
            axes.barh(places, sizes, left=start, color=colour, label=name, height=0.6)
            start += sizes
        axes.set_yticks(places, [f"{2**power:,} tokens" for power in powers])
        axes.set(ylim=(len(powers) - 0.5, -0.5), xlabel="GB, one sequence")
        axes.legend(fontsize="small", loc="upper right")


_COLOURS = ROLES["value"], ROLES["key"]
