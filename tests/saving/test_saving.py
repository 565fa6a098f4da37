"""Saving and loading: safetensors and JSON, and nothing else; old weights too."""

import json

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from tests.model.small import make_config, make_ids, make_model
from transformer.model.base import TranslationModel
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer.saving.hub import write_folder

VARIANTS = [
    dict(),
    dict(sharing="target", norm="pre", positions="sinusoidal-t2t"),
    dict(sharing="none", positions="learned", d_k=3, d_v=5, attention_bias=False),
    dict(attention_scale=0.5, max_length=2, activation="gelu", pad_id=3, dropout=0.25),
    dict(num_kv_heads=2, d_k=6, d_v=5, positions="rotary", activation="swiglu"),
]


@pytest.fixture
def saved(tmp_path):
    """Save a model without checksums, as other programs do, so that the tests can edit it."""
    make_model(dtype=torch.float32).save_pretrained(tmp_path)
    (tmp_path / "checksums.json").unlink()
    return tmp_path


@pytest.mark.parametrize("changes", VARIANTS)
def test_round_trip(tmp_path, changes):
    model = make_model(dtype=torch.float32, **changes)
    model.save_pretrained(tmp_path / "model")
    loaded = Transformer.from_pretrained(tmp_path / "model")
    assert loaded.config == model.config and not loaded.training
    torch.testing.assert_close(loaded.state_dict(), model.state_dict(), rtol=0, atol=0)
    assert loaded.num_parameters() == model.num_parameters()
    source, target = make_ids(2, 2), make_ids(2, 2, seed=1)
    assert torch.equal(loaded(source, target), model(source, target))


def test_what_a_killed_program_left_is_removed(tmp_path):
    (tmp_path / ".saving-x").mkdir()
    (tmp_path / ".saving-x/model.safetensors").write_text("half")
    make_model().save_pretrained(tmp_path)
    assert not list(tmp_path.glob(".saving-*"))


def test_written_files(saved):
    assert {path.name for path in saved.iterdir()} == {"config.json", "model.safetensors"}
    expected = dict(architecture="transformer") | make_config().to_dict()
    assert json.loads((saved / "config.json").read_text()) == expected
    weights = load_file(saved / "model.safetensors")
    model = Transformer.from_pretrained(saved)
    assert sum(value.numel() for value in weights.values()) == model.num_parameters()
    assert model.output_weight is model.embedding.weight


def test_loading_leaves_the_random_numbers_as_they_were(saved):
    """Those of a class of the user, too, which draws weights in a way of its own."""

    class Own(Transformer):
        architecture = None

        def __init__(self, config: TransformerConfig):
            super().__init__(config)
            self.decoder_norm.scale = nn.Parameter(torch.rand(3))

    Own(make_config()).float().save_pretrained(saved / "own")
    for load, folder in ((Transformer, saved), (Own, saved / "own")):
        before = torch.get_rng_state()
        model = load.from_pretrained(folder)
        assert torch.equal(before, torch.get_rng_state())
        stored = load_file(folder / "model.safetensors")
        assert all(torch.equal(weight, stored[n]) for n, weight in model.state_dict().items())


def test_weights_too_large_for_float16_are_not_halved(tmp_path):
    model = make_model(dtype=torch.float32)
    write_folder(tmp_path, model, half=True)
    stored = load_file(tmp_path / "model.safetensors")
    assert {weight.dtype for weight in stored.values()} == {torch.float16}
    with torch.no_grad():
        model.embedding.weight[0, 0] = 1e5
    with pytest.raises(ValueError, match="embedding.weight has one of 1e\\+05"):
        write_folder(tmp_path, model, half=True)
    assert Transformer.from_pretrained(tmp_path).embedding.weight[0, 0] != 1e5


@pytest.mark.parametrize("changes, named", [
    (dict(d_ff=29), "size mismatch"), (dict(norm="pre"), r"encoder_norm"),
    (dict(num_layers=3), r"encoder\.2\."), (dict(num_layers=1), r"encoder\.1\."),
])  # fmt: skip
def test_weights_of_another_configuration(saved, changes, named):
    (saved / "config.json").write_text(json.dumps(make_config(**changes).to_dict()))
    with pytest.raises(ValueError, match=f"do not fit.*{named}") as caught:
        Transformer.from_pretrained(saved)
    assert "\n" not in str(caught.value)


def test_an_unknown_device_is_not_a_fault_of_the_weights(saved):
    with pytest.raises(RuntimeError, match="device.*gpu"):
        Transformer.from_pretrained(saved, device="gpu")


class Untyped(Transformer):
    """Does not name the type of its configuration."""

    def __init__(self, config):
        super().__init__(config)


def test_the_class_of_all_models_names_the_one_that_loads_them(saved):
    with pytest.raises(ValueError, match=r"TranslationModel does not load; use Translator\."):
        TranslationModel.from_pretrained(saved)


def test_a_class_that_could_not_be_loaded_is_not_saved(tmp_path, saved):
    model = Untyped(make_config())
    for use in (
        lambda: model.save_pretrained(tmp_path / "new"),
        lambda: Untyped.from_pretrained(saved),
    ):
        with pytest.raises(TypeError, match=r"Untyped\.__init__ must name the dataclass"):
            use()
    assert not (tmp_path / "new").exists()


def test_an_unknown_field_or_option_is_refused_with_the_nearest_name(saved):
    path = saved / "config.json"
    whole = json.loads(path.read_text())
    for name, nearest in (("d_modle", "d_model"), ("num_layer", "num_layers")):
        path.write_text(json.dumps(whole | {name: 3}))
        with pytest.raises(ValueError, match=f"field '{name}'; did you mean '{nearest}'"):
            Transformer.from_pretrained(saved)
    path.write_text(json.dumps(whole))
    for name, nearest in (("revison", "revision"), ("devices", "device")):
        with pytest.raises(TypeError, match=f"unknown option '{name}'; did you mean '{nearest}'"):
            Transformer.from_pretrained(saved, **{name: "cpu"})
    assert Transformer.from_pretrained(saved, device="meta").output_weight.is_meta
