"""The arithmetic of a recorded training run, counted while its model runs."""

from typing import Any

import torch
from torch import Tensor

from transformer.recipes.architectures import ARCHITECTURES, build_model
from transformer.recording import record_attention
from transformer_book.studies.layer_types.operations import multiply_adds


def training_work(record: dict[str, Any], length: int = 15) -> float:
    """Count the operations of a run: forward per target token, and twice as many backward."""
    config = ARCHITECTURES[record.get("architecture", "transformer")][0]
    model: Any = build_model(config(**record["preset"]["model"])).eval()

    def both(tokens: Tensor) -> Tensor:
        with record_attention(model):  # fused attention would not be counted
            output: Tensor = model(tokens, tokens)
        return output

    tokens = torch.full((1, length), model.config.eos_id + 1)
    products = sum(multiply_adds(both, tokens).values())
    return 3.0 * 2 * products / length * record["target_tokens"]
