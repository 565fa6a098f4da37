"""Small models and batches for the tests of this folder."""

from collections.abc import Callable

import jaxtyping
import pytest
import torch
from torch import Tensor

from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer


@pytest.fixture(scope="session")
def make_config() -> Callable[..., TransformerConfig]:
    """Make a small configuration whose sizes all differ, so that no two can be mixed up."""

    def make(**changes) -> TransformerConfig:
        small = dict(
            vocab_size=19, d_model=16, d_ff=28, num_heads=4, num_layers=2, num_decoder_layers=3
        )
        return TransformerConfig(**small | changes)

    return make


@pytest.fixture(scope="session")
def make_model(make_config) -> Callable[..., Transformer]:
    """Make a small model in eval mode, in float64 unless told otherwise."""

    def make(seed: int = 0, dtype: torch.dtype = torch.float64, **changes) -> Transformer:
        torch.manual_seed(seed)
        model = Transformer(make_config(**changes))
        # Biases start at 0 and gains at 1, where a mistake in their use would not show.
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.data += 0.2 * torch.randn_like(parameter)
        return model.to(dtype).eval()

    return make


@pytest.fixture(scope="session")
def make_ids() -> Callable[..., Tensor]:
    """Make right-padded ids, one row for each length given."""

    def make(*lengths: int, seed: int = 0, bos: bool = False, width: int | None = None) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        ids = torch.zeros(len(lengths), width or max(lengths), dtype=torch.int64)
        for row, length in zip(ids, lengths, strict=True):
            row[:length] = torch.randint(3, 19, (length,), generator=generator)
            if bos:
                row[0] = 1
        return ids

    return make


@pytest.fixture
def unchecked(monkeypatch):
    """Switch the annotation checks off, to see the errors that a user sees."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
