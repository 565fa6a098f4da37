"""The configuration: the paper's models by name, and errors that say what is wrong."""

import json
from dataclasses import FrozenInstanceError

import jaxtyping
import pytest

from tests.model.small import make_config
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer.recipes.table_3 import table_3
from transformer.saving.locate import SHIPPED_FOLDER

SIZES = [("A", 4), ("B", 2), ("C", 7), ("D", 4), ("E", 1)]  # lines of Table 3


def test_defaults_are_the_paper():
    config = TransformerConfig(37_000)
    sizes = (config.d_model, config.d_ff, config.num_heads, config.num_layers)
    assert sizes == (512, 2048, 8, 6)
    assert (config.dropout, config.attention_dropout, config.activation_dropout) == (0.1, 0.0, 0.0)
    assert (config.norm, config.norm_kind, config.activation) == ("post", "layer", "relu")
    assert (config.positions, config.sharing) == ("sinusoidal", "three-way")
    assert (config.attention_bias, config.attention_scale) == (True, None)
    assert (config.pad_id, config.bos_id, config.eos_id) == (0, 1, 2)
    assert config == TransformerConfig.base() == table_3("base")


def test_named_models():
    big = TransformerConfig.big(100)
    assert (big.d_model, big.d_ff, big.num_heads, big.num_layers) == (1024, 4096, 16, 6)
    assert (big.dropout, big.vocab_size) == (0.3, 100)
    assert table_3("big", vocab_size=100) == big
    tiny = TransformerConfig.tiny(100)
    assert (tiny.d_model, tiny.d_ff, tiny.num_heads, tiny.num_layers) == (128, 256, 4, 4)
    assert tiny.dropout == 0.3
    for named in (TransformerConfig.base, TransformerConfig.big, TransformerConfig.tiny):
        config = named(50, norm="pre", dropout=0.0)
        assert (config.vocab_size, config.norm, config.dropout) == (50, "pre", 0.0)


def test_lines_of_table_3():
    """The parameter counts tell those of rows B and C apart, see test_parameters.py."""
    lines = {row: [table_3(row, i + 1) for i in range(n)] for row, n in SIZES}
    assert [line.num_heads for line in lines["A"]] == [1, 4, 16, 32]
    assert [line.dropout for line in lines["D"]] == [0.0, 0.2, 0.1, 0.1]
    assert lines["E"] == [TransformerConfig.base(positions="learned")]
    for row, n in [*SIZES, ("base", 1), ("big", 1), ("F", 0)]:
        with pytest.raises(ValueError, match=f"no line {row}{n + 1}"):
            table_3(row, n + 1)


BAD_VALUES = [
    *[(name, 0) for name in ("vocab_size", "d_model", "d_ff", "num_heads", "num_layers")],
    *[(name, 0) for name in ("max_length", "d_k", "d_v", "num_decoder_layers", "num_kv_heads")],
    *[("dropout", value) for value in (-0.1, 1.0, float("nan"))],
    *[("attention_dropout", 1.0), ("activation_dropout", -0.5), ("activation", "tanh")],
    *[(name, "other") for name in ("norm", "norm_kind", "positions", "sharing", "init")],
    *[(name, True) for name in ("num_layers", "d_k", "pad_id")],
    *[("dropout", False), ("attention_bias", "false"), ("final_norm", 1)],
    *[("layer_norm_eps", value) for value in (-5, float("nan"), float("inf"), "1e-6")],
    *[("attention_scale", value) for value in (float("nan"), float("inf"), True, "1")],
    *[("first_input", "ones"), ("pad_id", -1), ("bos_id", 37_000), ("eos_id", 37_000)],
]


@pytest.mark.parametrize("name, value", BAD_VALUES)
def test_bad_values_are_named(name, value, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # as for a user
    with pytest.raises(ValueError, match=f"{name} must be .*{value}"):
        TransformerConfig.base(**{name: value})


def test_values_that_do_not_fit_together():
    for changes in (dict(pad_id=1), dict(pad_id=2), dict(bos_id=2)):
        with pytest.raises(ValueError, match="must differ"):
            TransformerConfig(50, **changes)
    for sizes in (dict(), dict(d_k=4), dict(d_v=4)):
        with pytest.raises(ValueError, match="d_model=10, num_heads=4"):
            TransformerConfig(50, d_model=10, num_heads=4, **sizes)
    assert TransformerConfig(50, d_model=10, num_heads=4, d_k=3, d_v=2).d_k == 3


def test_round_trip_through_json():
    config = make_config(d_k=3, norm="pre", positions="learned", attention_scale=1.0)
    values = json.loads(json.dumps(config.to_dict()))
    assert TransformerConfig.from_dict(values) == config
    with pytest.raises(FrozenInstanceError):
        config.d_model = 3


@pytest.mark.parametrize("name, hint", [("d_modle", "d_model"), ("colour", "vocab_size, ")])
def test_unknown_fields_are_named(name, hint):
    with pytest.raises(ValueError, match=f"'{name}'.*{hint}"):
        TransformerConfig.from_dict({"vocab_size": 50, name: 1})


def test_the_file_of_a_model_is_a_configuration():
    values = json.loads((SHIPPED_FOLDER / "tatoeba-en-de/config.json").read_text())
    assert TransformerConfig.from_dict(values).d_model == values["d_model"]
    with pytest.raises(ValueError, match="architecture must be 'transformer', got 'recurrent'"):
        TransformerConfig.from_dict(values | dict(architecture="recurrent"))


def test_a_number_instead_of_a_configuration_is_refused(monkeypatch):
    monkeypatch.setattr("jaxtyping.config.jaxtyping_disable", True)
    for wrong in (100, dict(vocab_size=100)):
        with pytest.raises(TypeError, match="config must be a TransformerConfig.*100"):
            Transformer(wrong)
    for name, value in dict(vocab_size=100.0, num_heads="8", d_k=2.5, eos_id=2.0).items():
        with pytest.raises(ValueError, match=f"{name} must be .*whole.*{value}"):
            TransformerConfig(**dict(vocab_size=100) | {name: value})
    with pytest.raises(ValueError, match=r"dropout must be a number in \[0, 1\), got '0.1'"):
        TransformerConfig(100, dropout="0.1")
