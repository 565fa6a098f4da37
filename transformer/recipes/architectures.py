"""The model of each configuration: the Transformer and the architectures it is compared with."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from transformer.baselines import (
    ConvolutionalConfig,
    ConvolutionalTranslator,
    RecurrentConfig,
    RecurrentTranslator,
)
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer

ModelConfig = TransformerConfig | RecurrentConfig | ConvolutionalConfig
Model = Transformer | RecurrentTranslator | ConvolutionalTranslator

#: Configuration and model of each architecture, by its name in records.
ARCHITECTURES: dict[str, tuple[type[ModelConfig], type[Model]]] = {
    "transformer": (TransformerConfig, Transformer),
    "recurrent": (RecurrentConfig, RecurrentTranslator),
    "convolutional": (ConvolutionalConfig, ConvolutionalTranslator),
}


def architecture(config: ModelConfig) -> str:
    """Name the architecture of a configuration."""
    return next(name for name, (kind, _) in ARCHITECTURES.items() if isinstance(config, kind))


def build_model(config: ModelConfig) -> Model:
    """Make the model of a configuration, with fresh weights."""
    make: Callable[[Any], Model] = ARCHITECTURES[architecture(config)][1]
    return make(config)


@cache
def count_parameters(config: ModelConfig) -> int:
    """Count the parameters of a model without allocating its weights."""
    with torch.device("meta"):
        return build_model(config).num_parameters()
