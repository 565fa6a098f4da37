"""How long a card needs for a training step whose kernels, operations and bytes were counted."""

from dataclasses import dataclass
from pathlib import Path

from transformer.recipes.cards import HOST, SUSTAINED, Card

#: Counts of the steps of two presets.
RECORD = Path(__file__).parent / "roofline.json"

#: Operations per second that the largest matrix products may reach on an H100 (assumed).
BEST_PRODUCTS = 800e12

#: Share of :data:`BEST_PRODUCTS` that the steps should at least reach, by preset.
AIMS = {"wmt14-base": 0.35, "wmt14-big": 0.5}


@dataclass(frozen=True)
class StepCount:
    """Counts of a training step, each the mean over several steps."""

    kernels: float  #: launched on the device; an operator counts as one
    product_flops: float  #: operations of the matrix products, those inside attention included
    other_bytes: float  #: that all kernels but the matrix products read and write
    batches: int  #: whose gradients the step adds up
    target_tokens: float  #: without padding
    peak_bytes: int  #: of device memory

    def seconds(self, card: Card) -> float:
        """Estimate the time of the step on a card from the rates that it sustains."""
        products, copies = SUSTAINED
        computing = self.product_flops / (products * card.flops)
        moving = self.other_bytes / (copies * card.bandwidth)
        return max(computing + moving, HOST * self.batches)

    def utilisation(self, card: Card) -> float:
        """Estimate the share of the data sheet's rate that becomes matrix products."""
        return self.product_flops / self.seconds(card) / card.flops
