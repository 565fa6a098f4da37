"""Each configuration finds its model, and each model its configuration."""

import pytest

from transformer.baselines import ConvolutionalConfig, RecurrentConfig
from transformer.model.config import TransformerConfig
from transformer.recipes.architectures import (
    ARCHITECTURES,
    architecture,
    build_model,
    config_of_class,
)

CONFIGS = {
    "transformer": TransformerConfig(20, d_model=16, d_ff=16, num_heads=2, num_layers=1),
    "recurrent": RecurrentConfig(20, d_model=16),
    "convolutional": ConvolutionalConfig(20, d_model=16, num_layers=1, max_length=8),
}


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_there_and_back(name):
    config = CONFIGS[name]
    assert architecture(config) == name
    model = build_model(config)
    assert model.config is config
    assert config_of_class(type(model).__name__, config.to_dict()) == config


def test_a_class_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="no model is called 'Mamba'; known: Transformer"):
        config_of_class("Mamba", {})
