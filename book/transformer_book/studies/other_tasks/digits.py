"""Handwritten digits as sequences of patches: each square of a small image is a token.

The images are the 1,797 that scikit-learn ships, 8 by 8 pixels in 17 shades of grey. They are the
test part of the data set of E. Alpaydin and C. Kaynak (1998, doi:10.24432/C50P49, CC BY 4.0), who
extracted them from filled-in forms with programs of the NIST. The patches are as those of
Dosovitskiy et al., 2020. The file appears to be grouped by writer, so most of the test digits,
taken from its end, are probably by people with no digit in the training set.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Digits:
    """Images, with brightness from 0 to 1, and their labels, from 0 to 9."""

    images: Float[Tensor, "B height width"]
    labels: Int[Tensor, " B"]

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: slice) -> "Digits":
        return Digits(self.images[rows], self.labels[rows])


def load_digits(test_size: int = 597) -> tuple[Digits, Digits]:
    """Load the digits that scikit-learn ships, as a training and a test set."""
    try:
        from sklearn import datasets
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "the digits are part of scikit-learn: pip install 'transformer-book[book]'",
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
    """Cut images into squares with sides of ``size`` pixels, row by row, and flatten each."""
    _, height, width = images.shape
    rows = images.unflatten(2, (width // size, size)).unflatten(1, (height // size, size))
    return rows.transpose(2, 3).flatten(3).flatten(1, 2)
