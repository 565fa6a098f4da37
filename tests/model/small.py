"""Small models and batches."""

import torch
from torch import Tensor

from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer


def draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def make_config(**changes) -> TransformerConfig:
    """Make a small configuration whose sizes all differ, so that no two can be mixed up."""
    small = dict(
        vocab_size=19, d_model=16, d_ff=28, num_heads=4, num_layers=2, num_decoder_layers=3
    )
    return TransformerConfig(**small | changes)


def make_model(seed: int = 0, dtype: torch.dtype = torch.float64, **changes) -> Transformer:
    """Make a small model in eval mode."""
    torch.manual_seed(seed)
    model = Transformer(make_config(**changes))
    # Biases start at 0 and gains at 1, where a mistake in their use would not show.
    for parameter in model.parameters():
        if parameter.dim() == 1:
            parameter.data += 0.2 * torch.randn_like(parameter)
    return model.to(dtype).eval()


def make_ids(*lengths: int, seed: int = 0, bos: bool = False, width: int | None = None) -> Tensor:
    """Make right-padded ids, one row for each length."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.zeros(len(lengths), width or max(lengths), dtype=torch.int64)
    for row, length in zip(ids, lengths, strict=True):
        row[:length] = torch.randint(3, 19, (length,), generator=generator)
        if bos:
            row[0] = 1
    return ids


def make_batch() -> tuple[Tensor, Tensor]:
    """Make source and target ids of two sentences, a third of each padding."""
    return make_ids(6, 2), make_ids(3, 7, seed=1, bos=True)
