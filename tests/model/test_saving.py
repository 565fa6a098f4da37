"""Saving and loading: safetensors and JSON, and nothing else."""

import json
import pickle

import huggingface_hub.hub_mixin
import pytest
import torch
from huggingface_hub.errors import EntryNotFoundError
from safetensors.torch import load_file, save_file

from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer


class Bomb:
    """A pickle that does something when it is opened."""

    def __reduce__(self):
        return (exec, ("raise SystemExit('a pickle was opened')",))


@pytest.fixture
def saved(make_model, tmp_path):
    """Without checksums, as of another program, so that the tests can edit the files."""
    make_model(dtype=torch.float32).save_pretrained(tmp_path)
    (tmp_path / "checksums.json").unlink()
    return tmp_path


@pytest.mark.parametrize(
    "changes",
    [
        dict(),
        dict(sharing="target", norm="pre", positions="sinusoidal-t2t"),
        dict(sharing="none", positions="learned", d_k=3, d_v=5, attention_bias=False),
        dict(attention_scale=0.5, max_length=2, activation="gelu", pad_id=3, dropout=0.25),
    ],
)
def test_round_trip(make_model, make_ids, tmp_path, changes):
    model = make_model(dtype=torch.float32, **changes)
    model.save_pretrained(tmp_path / "model")
    loaded = Transformer.from_pretrained(tmp_path / "model")
    assert loaded.config == model.config and isinstance(loaded.config, TransformerConfig)
    assert loaded.state_dict().keys() == model.state_dict().keys()
    for name, value in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value)
    source, target = make_ids(2, 2), make_ids(2, 2, seed=1)
    assert not loaded.training
    assert torch.equal(loaded(source, target), model(source, target))
    assert loaded.num_parameters() == model.num_parameters()


def test_what_is_written(saved, make_config):
    names = {path.name for path in saved.iterdir()}
    assert (
        {"config.json", "model.safetensors"}
        <= names
        <= {"config.json", "model.safetensors", "README.md"}
    )
    values = json.loads((saved / "config.json").read_text())
    assert values == make_config().to_dict()
    weights = load_file(saved / "model.safetensors")
    assert "embedding.weight" in weights  # shared, hence there once
    assert (
        sum(value.numel() for value in weights.values())
        == Transformer(make_config()).num_parameters()
    )


def test_a_loaded_model_still_shares_its_matrix(saved):
    model = Transformer.from_pretrained(saved)
    assert model.output_weight is model.embedding.weight


@pytest.mark.parametrize("damage", ["short", "empty", "noise"])
def test_a_damaged_file(saved, damage):
    path = saved / "model.safetensors"
    content = path.read_bytes()
    path.write_bytes({"short": content[:-100], "empty": b"", "noise": b"\x93" * 400}[damage])
    with pytest.raises(ValueError, match=r"model\.safetensors is not a whole safetensors file"):
        Transformer.from_pretrained(saved)


@pytest.mark.parametrize(
    "changes, named",
    [
        (dict(d_ff=29), "size mismatch"),
        (dict(vocab_size=20), "size mismatch"),
        (dict(num_layers=3), r"encoder\.2\."),
        (dict(num_layers=1), r"encoder\.1\."),
        (dict(sharing="none"), r"output\.weight"),
        (dict(norm="pre"), r"encoder_norm"),
    ],
)
def test_weights_of_another_configuration(saved, make_config, changes, named):
    config = make_config(**changes)
    (saved / "config.json").write_text(json.dumps(config.to_dict()))
    with pytest.raises(ValueError, match=f"do not fit.*{named}") as caught:
        Transformer.from_pretrained(saved)
    assert "\n" not in str(caught.value)


def test_a_missing_and_an_unknown_weight(saved):
    path = saved / "model.safetensors"
    weights = load_file(path)
    name = "decoder.0.feed_forward.hidden.bias"
    save_file({key: value for key, value in weights.items() if key != name}, path)
    with pytest.raises(ValueError, match=name):
        Transformer.from_pretrained(saved)
    save_file(weights | {"surplus": torch.zeros(2)}, path)
    with pytest.raises(ValueError, match="surplus"):
        Transformer.from_pretrained(saved)


def test_no_weights_at_all(saved):
    (saved / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError):
        Transformer.from_pretrained(saved)


def test_a_pickle_in_the_folder_is_not_opened(saved):
    (saved / "model.safetensors").unlink()
    (saved / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(FileNotFoundError):
        Transformer.from_pretrained(saved)


def test_a_pickle_on_the_hub_is_not_opened(saved, make_model, monkeypatch):
    """The mixin falls back to a pickle when a repository has no safetensors."""
    torch.save(make_model(dtype=torch.float32).state_dict(), saved / "pytorch_model.bin")

    def download(repo_id: str, filename: str, **_) -> str:
        if filename == "model.safetensors":
            raise EntryNotFoundError("no such file")
        return str(saved / filename)

    monkeypatch.setattr(huggingface_hub.hub_mixin, "hf_hub_download", download)
    with pytest.raises(ValueError, match="safetensors"):
        Transformer.from_pretrained("someone/something")


def test_half_precision_weights_are_read_into_single_precision(saved):
    path = saved / "model.safetensors"
    halves = {name: value.half() for name, value in load_file(path).items()}
    save_file(halves, path)
    model = Transformer.from_pretrained(saved)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert torch.equal(model.embedding.weight, halves["embedding.weight"].float())
