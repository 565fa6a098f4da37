"""Handwritten digits as sequences of patches: each square of a small image is a token.

The images are the 1,797 that scikit-learn ships, 8 by 8 pixels in 17 shades of grey (a part of the
data set of E. Alpaydin and C. Kaynak, 1998, made from forms of the NIST).

Paper: section 7 (plans for images); the patches are of Dosovitskiy et al., 2020
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


@dataclass(frozen=True)
class Digits:
    """Images, with brightness from 0 to 1, and their labels, from 0 to 9."""

    images: Float[Tensor, "B height width"]
    labels: Int[Tensor, " B"]

    def __len__(self) -> int:
        return len(self.labels)


def load_digits(test_size: int = 597) -> tuple[Digits, Digits]:
    """Load the digits that scikit-learn ships, as a training and a test set.

    Args:
        test_size: size of the test set, taken from the end of the file. The file is sorted by
            writer, so most of the test digits are by writers that are not in the training set.
    """
    try:
        from sklearn import datasets
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "the digits are part of scikit-learn: pip install 'transformer-book[digits]'",
            name=error.name,
        ) from None
    found = datasets.load_digits()
    images = torch.tensor(found.images, dtype=torch.float32) / 16
    labels = torch.tensor(found.target, dtype=torch.long)
    cut = len(labels) - test_size
    return Digits(images[:cut], labels[:cut]), Digits(images[cut:], labels[cut:])


def cut_patches(
    images: Float[Tensor, "B height width"], size: int = 2
) -> Float[Tensor, "B patches pixels"]:
    """Cut images into squares of ``size`` pixels, row by row, and flatten each."""
    _, height, width = images.shape
    rows = images.unflatten(2, (width // size, size)).unflatten(1, (height // size, size))
    return rows.transpose(2, 3).flatten(3).flatten(1, 2)


class SmallConvNet(nn.Module):
    """Two convolutions, max pooling, and a linear layer."""

    def __init__(self, channels: int = 16):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(channels, 2 * channels, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(2 * channels * 16, 10),
        )

    def forward(self, images: Float[Tensor, "B 8 8"]) -> Float[Tensor, "B 10"]:
        """Return the logits of the ten digits."""
        return self.layers(images[:, None])
