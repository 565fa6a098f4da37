"""A digit cut into patches, and the attention of each patch to the others."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from transformer.recording import record_attention
from transformer_book.palette import ROLES
from transformer_book.studies.other_tasks.digits import cut_patches
from transformer_book.studies.other_tasks.encoder_model import EncoderModel
from transformer_book.widgets.base import Explorer


class PatchExplorer(Explorer):
    """Digits, heads and patches to choose from, and the weights of the chosen patch."""

    kind = "patch-explorer"
    size = (6.4, 3.2)

    def __init__(
        self,
        model: EncoderModel,
        images: Float[Tensor, "B 8 8"],
        labels: Sequence[int],
        patch: int = 5,
    ):
        if not 1 <= len(images) <= 6 or len(labels) != len(images):
            raise ValueError(
                f"one to six images with a label each are needed, got {len(images)} images and "
                f"{len(labels)} labels"
            )
        with torch.no_grad(), record_attention(model.eval()) as recorded:
            chances = model(cut_patches(images)).softmax(dim=-1)
        #: (images, layers, heads, patches, patches)
        self.weights = torch.stack([w.detach() for w in recorded.values()], dim=1).numpy()
        self.images, self.labels, self.patch = images.numpy(), list(labels), patch
        self.read, self.chance = chances.argmax(-1).tolist(), chances.amax(-1).tolist()
        said = ", ".join(
            f"{right} read as {found}" for right, found in zip(labels, self.read, strict=True)
        )
        self.alt = (
            "Handwritten digits of 8 by 8 pixels, cut into 16 patches, and for a chosen patch the "
            f"attention weights of a head to all patches. The digits: {said}."
        )

    def payload(self) -> dict[str, Any]:
        """Collect images, weights and the model's answers."""
        return {
            "title": "Where does a patch look?",
            "images": np.round(16 * self.images).astype(int).tolist(),
            "weights": np.round(self.weights.astype(float), 2).tolist(),
            "labels": self.labels,
            "read": self.read,
            "chance": [round(chance, 2) for chance in self.chance],
            "patch": self.patch,
        }

    def draw(self, figure: Figure) -> None:
        """Draw the first digit, and the weights of the patch in the first head."""
        left, right = figure.subplots(1, 2)
        left.imshow(self.images[0], cmap="gray_r", extent=(0, 4, 4, 0))
        row, column = divmod(self.patch, 4)
        x, y = column, row
        left.plot(
            [x, x + 1, x + 1, x, x], [y, y, y + 1, y + 1, y], color=ROLES["query"], lw=3,
        )  # fmt: skip
        weights = self.weights[0, 0, 0, self.patch].reshape(4, 4)
        right.imshow(weights, cmap="Blues", vmin=0, vmax=1)
        for (i, j), weight in np.ndenumerate(weights):
            right.text(j, i, f"{weight:.2f}", ha="center", va="center",
                       color="white" if weight > 0.6 else "black")  # fmt: skip
        for axes, title in ((left, "the patch"), (right, "its weights, layer 1, head 1")):
            axes.set(xticks=[], yticks=[], title=title)
