"""Properties of a correct model, each measured as one number that is 0 where it holds."""

from collections.abc import Callable

import torch
from jaxtyping import Int
from torch import Tensor

from transformer.data.batching import Batch
from transformer.model.transformer import Transformer

Shift = Callable[[Int[Tensor, "B T"]], Int[Tensor, "B T"]]


def shift_right(labels: Int[Tensor, "B T"], bos_id: int = 1) -> Int[Tensor, "B T"]:
    """Make the decoder's input: ``bos_id`` first, then every label but the last."""
    return torch.cat([torch.full_like(labels[:, :1], bos_id), labels[:, :-1]], dim=1)


@torch.no_grad()
def leak_gap(model: Transformer, batch: Batch, shift: Shift = shift_right) -> float:
    """Change label i, and measure how much the logits at positions 0..i change."""
    memory = model.encode(batch.source)
    before = model.decode(shift(batch.labels), memory, batch.source)
    largest = 0.0
    for i in range(batch.labels.size(1)):
        changed = batch.labels.clone()
        real = changed[:, i] != model.config.pad_id
        changed[real, i] = (changed[real, i] + 1) % model.config.vocab_size
        after = model.decode(shift(changed), memory, batch.source)
        difference = (after - before)[real, : i + 1]
        largest = max(largest, difference.abs().max().item() if real.any() else 0.0)
    return largest


@torch.no_grad()
def padding_gap(model: Transformer, batch: Batch, extra: int = 3, pad_id: int = 0) -> float:
    """Append padding to sources and targets, and measure how much the logits change."""
    source = torch.nn.functional.pad(batch.source, (0, extra), value=pad_id)
    target = torch.nn.functional.pad(batch.target_input, (0, extra), value=pad_id)
    real = batch.labels != pad_id
    before = model(batch.source, batch.target_input)
    after = model(source, target)[:, : real.size(1)]
    return (after - before)[real].abs().max().item()


@torch.no_grad()
def order_gap(model: Transformer, batch: Batch) -> float:
    """Reverse the tokens of each source; measure the change of the logits. 0 is the failure."""
    turned = batch.source.clone()
    for row in turned:
        real = row != 0
        row[real] = row[real].flip(0)
    difference = model(turned, batch.target_input) - model(batch.source, batch.target_input)
    return difference.abs().max().item()


@torch.no_grad()
def cache_gap(model: Transformer, batch: Batch) -> float:
    """Decode the targets one token at a time, and compare with all positions at once."""
    at_once = model(batch.source, batch.target_input)
    state = model.start_decoding(batch.source, max_length=batch.target_input.size(1))
    steps = [model.decode_next(tokens, state) for tokens in batch.target_input.T]
    real = batch.target_input != 0
    return (torch.stack(steps, dim=1) - at_once)[real].abs().max().item()
