"""The configuration: the paper's models by name, and errors that say what is wrong."""

import json
from dataclasses import FrozenInstanceError

import pytest

from transformer.model.config import TransformerConfig


def test_defaults_are_the_paper():
    config = TransformerConfig(37_000)
    sizes = (config.d_model, config.d_ff, config.num_heads, config.num_layers)
    assert sizes == (512, 2048, 8, 6)
    assert (config.dropout, config.attention_dropout, config.activation_dropout) == (0.1, 0.0, 0.0)
    assert (config.norm, config.positions, config.sharing) == ("post", "sinusoidal", "three-way")
    assert (config.activation, config.attention_bias, config.attention_scale) == (
        "relu",
        True,
        None,
    )
    assert (config.pad_id, config.bos_id, config.eos_id) == (0, 1, 2)
    assert config == TransformerConfig.base() == TransformerConfig.table3("base")


def test_named_models():
    big = TransformerConfig.big(100)
    assert (big.d_model, big.d_ff, big.num_heads, big.num_layers) == (1024, 4096, 16, 6)
    assert (big.dropout, big.vocab_size) == (0.3, 100)
    assert TransformerConfig.table3("big", vocab_size=100) == big
    tiny = TransformerConfig.tiny(100)
    assert (tiny.d_model, tiny.d_ff, tiny.num_heads, tiny.num_layers) == (128, 256, 4, 4)
    assert tiny.dropout == 0.3


@pytest.mark.parametrize("name", ["base", "big", "tiny"])
def test_any_field_of_a_named_model_can_be_changed(name):
    config = getattr(TransformerConfig, name)(50, norm="pre", dropout=0.0)
    assert (config.vocab_size, config.norm, config.dropout) == (50, "pre", 0.0)


# What Table 3 prints; blank = as base. d_k and d_v of rows A and C follow from d_model / h.
TABLE_3 = {
    ("A", 1): dict(num_heads=1),
    ("A", 2): dict(num_heads=4),
    ("A", 3): dict(num_heads=16),
    ("A", 4): dict(num_heads=32),
    ("B", 1): dict(d_k=16),
    ("B", 2): dict(d_k=32),
    ("C", 1): dict(num_layers=2),
    ("C", 2): dict(num_layers=4),
    ("C", 3): dict(num_layers=8),
    ("C", 4): dict(d_model=256),
    ("C", 5): dict(d_model=1024),
    ("C", 6): dict(d_ff=1024),
    ("C", 7): dict(d_ff=4096),
    ("D", 1): dict(dropout=0.0),
    ("D", 2): dict(dropout=0.2),
    ("D", 3): dict(),
    ("D", 4): dict(),
    ("E", 1): dict(positions="learned"),
}


@pytest.mark.parametrize("line", TABLE_3)
def test_lines_of_table_3(line):
    expected = TransformerConfig.base(40_960, **TABLE_3[line])
    assert TransformerConfig.table3(*line, vocab_size=40_960) == expected


@pytest.mark.parametrize("line", [("A", 0), ("A", 5), ("B", 3), ("C", 8), ("D", 5), ("E", 2)])
@pytest.mark.parametrize("other", [None, ("F", 1), ("base", 2), ("big", 2), ("a", 1)])
def test_lines_that_table_3_does_not_have(line, other):
    row, place = other or line
    with pytest.raises(ValueError, match=f"no line {row}{place}"):
        TransformerConfig.table3(row, place)


BAD_VALUES = [
    *[(name, 0) for name in ("vocab_size", "d_model", "d_ff", "num_heads", "num_layers")],
    *[(name, 0) for name in ("max_length", "d_k", "d_v", "num_decoder_layers")],
    ("d_model", -512),
    *[("dropout", value) for value in (-0.1, 1.0, 1.5, float("nan"))],
    ("attention_dropout", 1.0),
    ("activation_dropout", -0.5),
    ("activation", "tanh"),
    ("norm", "sideways"),
    ("positions", "rotating"),
    ("sharing", "all"),
    ("init", "he"),
    ("pad_id", -1),
    ("bos_id", 37_000),
    ("eos_id", 37_000),
]


@pytest.mark.parametrize("name, value", BAD_VALUES)
def test_bad_values_are_named(name, value, unchecked):
    with pytest.raises(ValueError, match=f"{name} must be .*{value}"):
        TransformerConfig.base(**{name: value})


def test_heads_must_divide_d_model_unless_their_sizes_are_given():
    for sizes in (dict(), dict(d_k=4), dict(d_v=4)):
        with pytest.raises(ValueError, match="d_model=10, num_heads=4"):
            TransformerConfig(50, d_model=10, num_heads=4, **sizes)
    assert TransformerConfig(50, d_model=10, num_heads=4, d_k=3, d_v=2).d_k == 3


def test_round_trip_through_json(make_config):
    config = make_config(d_k=3, norm="pre", positions="learned", attention_scale=1.0)
    values = json.loads(json.dumps(config.to_dict()))
    assert TransformerConfig.from_dict(values) == config


@pytest.mark.parametrize(
    "name, hint", [("d_modle", "did you mean 'd_model'"), ("colour", "fields are vocab_size, ")]
)
def test_unknown_fields_are_named(name, hint):
    with pytest.raises(ValueError, match=f"unknown model field '{name}'.*{hint}"):
        TransformerConfig.from_dict({"vocab_size": 50, name: 1})


def test_a_configuration_cannot_be_changed(make_config):
    with pytest.raises(FrozenInstanceError):
        make_config().d_model = 3


@pytest.mark.parametrize("same", [("pad_id", "bos_id"), ("pad_id", "eos_id"), ("bos_id", "eos_id")])
def test_special_ids_must_differ(same):
    first, second = same
    value = getattr(TransformerConfig(50), second)
    with pytest.raises(ValueError, match="must differ"):
        TransformerConfig(50, **{first: value})
