"""A damaged, forged or half-written model is refused in one line, or translates as before."""

import json
import os
import pickle
import shutil
import struct
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from transformer.data.tokenizer import Tokenizer
from transformer.inference.translator import Translator
from transformer.interop.marian import read_weights
from transformer.model.transformer import Transformer
from transformer.saving.files import MANIFEST, read_weight_file, require_unchanged, write_manifest
from transformer.saving.locate import SHIPPED_FOLDER

FILES = ("config.json", "model.safetensors", "tokenizer.json")
SHIPPED = SHIPPED_FOLDER / "tatoeba-en-de"

pytestmark = pytest.mark.usefixtures("unchecked")  # as outside the tests


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(["Where is the train station?", "Grüße aus Köln"] * 3, 270)


@pytest.fixture(scope="module")
def saved(small_transformer, tokenizer, tmp_path_factory):
    model = small_transformer(tokenizer.vocab_size, max_length=80, positions="learned")
    return Translator(model, tokenizer).save_pretrained(tmp_path_factory.mktemp("saved") / "model")


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "copy")


@pytest.fixture
def foreign(folder):
    """A folder without checksums, as other programs write it."""
    (folder / MANIFEST).unlink()
    return folder


def content(translator):
    weights = {name: w.tolist() for name, w in translator.model.state_dict().items()}
    return translator.model.config, translator.tokenizer.to_json(), weights


def refused(folder):
    """A ValueError of one line from every loader; return its text."""
    for load in (Translator.from_pretrained, Transformer.from_pretrained):
        with pytest.raises(ValueError) as caught:
            load(folder)
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 800
    return str(caught.value)


def edit(path, change):
    whole = json.loads(path.read_text(encoding="utf-8"))
    change(whole)
    path.write_text(json.dumps(whole), encoding="utf-8")


# ------------------------------------------------------------------ any model


@pytest.mark.parametrize("name", FILES)
def test_missing_and_truncated_files_are_named(folder, name):
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=name):
        Translator.from_pretrained(folder)
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"{name} missing"):
        Translator.from_pretrained(folder)


@pytest.mark.parametrize("text", [b"[]", b"{", b"\xff\xfe", b"[" * 100_000])
def test_a_configuration_that_is_no_json_object(foreign, text):
    (foreign / "config.json").write_bytes(text)
    refused(foreign)


@pytest.mark.parametrize(
    "field, value",
    [
        ("vocab_size", 10**12),
        ("d_model", 10**5),
        ("d_ff", 10**9),
        ("num_layers", 10**9),
        ("max_length", 10**12),
        ("d_model", "16"),
        ("layer_norm_eps", float("nan")),
        ("final_norm", "yes"),
        ("pad_id", [0]),
    ],
)
def test_a_wrong_type_or_a_size_beyond_the_weights_is_refused(foreign, field, value):
    edit(foreign / "config.json", lambda whole: whole.get("config", whole).update({field: value}))
    assert "allocate" not in refused(foreign)  # not after asking for the memory


def tensor(dtype="F32", shape=(1,)):
    return json.dumps({"a": dict(dtype=dtype, shape=shape, data_offsets=(0, 4))}).encode()


@pytest.mark.parametrize(
    "header, claimed",
    [(tensor(), 2**63), (tensor("X9"), None), (tensor(shape=(2**62,)), None), (b"[]", 0)],
)
def test_weights_with_a_forged_header(tmp_path, header, claimed):
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(header) if claimed is None else claimed) + header)
    for read in (read_weight_file, lambda path: read_weights(path.parent)):
        with pytest.raises(ValueError, match=r"^[^\n]*$"):
            read(path)


class Malicious:
    def __init__(self, victim):
        self.victim = str(victim)

    def __reduce__(self):
        return os.mkdir, (self.victim,)


def test_a_pickle_in_place_of_any_file_runs_nothing(foreign, tmp_path):
    victim = tmp_path / "victim"
    for name in FILES:
        whole = (foreign / name).read_bytes()
        (foreign / name).write_bytes(pickle.dumps(Malicious(victim)))
        with pytest.raises(ValueError):
            Translator.from_pretrained(foreign)
        (foreign / name).write_bytes(whole)
    # A repository with a pickle only, as it would come from the Hub or as a Marian model.
    (foreign / "model.safetensors").unlink()
    torch.save({"a": Malicious(victim)}, foreign / "pytorch_model.bin")
    with pytest.raises((ValueError, FileNotFoundError)):
        Transformer.from_pretrained(foreign)
    with pytest.raises(ValueError, match="pytorch_model.bin"):
        read_weights(foreign)
    assert not victim.exists()


def test_weights_that_are_not_finite_are_reported_at_the_first_sentence(foreign):
    path = foreign / "model.safetensors"
    save_file({n: torch.full_like(w, float("nan")) for n, w in load_file(path).items()}, path)
    with pytest.raises(ValueError, match="not finite"):
        Translator.from_pretrained(foreign)("Where?")


# ------------------------------------------------------------------ a model with checksums


@pytest.mark.parametrize("name", [*FILES, MANIFEST])
def test_a_flipped_bit_is_noticed_or_changes_nothing(saved, folder, name):
    whole, noticed = content(Translator.from_pretrained(saved)), 0
    data = (saved / name).read_bytes()
    places = [len(data) * i // 25 for i in range(25)]
    for place in places:
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 7  # never the highest bit, which would not be UTF-8
        (folder / name).write_bytes(damaged)
        try:
            found = Translator.from_pretrained(folder)
        except ValueError as error:
            assert "\n" not in str(error)
            noticed += 1
        else:
            assert content(found) == whole, place
    # A blank may become another one, and the name of a file or a tensor's padding another name.
    assert noticed > 0.5 * len(places)


@pytest.mark.parametrize("after", range(5))
def test_saving_that_is_stopped_between_two_files(saved, folder, tokenizer, monkeypatch, after):
    """Afterwards the folder holds the old model, the new one, or is refused: never a mixture."""
    model = Transformer.from_pretrained(folder)
    for weight in model.parameters():
        weight.data.add_(1)
    model.tokenizer_checksum = None  # the new model belongs to another one
    other = Tokenizer.train(["quite another text of words and words"] * 2, tokenizer.vocab_size)
    rest, replace = iter(range(after)), os.replace

    def stop(source, target):
        if Path(target).parent == folder and next(rest, None) is None:
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", stop)
    with suppress(KeyboardInterrupt):
        Translator(model, other).save_pretrained(folder)
    found = None
    with suppress(ValueError):
        found = content(Translator.from_pretrained(folder))
    old, new = content(Translator.from_pretrained(saved)), content(Translator(model, other))
    assert found in (old, new, None)
    assert found == (old if after == 0 else new) or 0 < after < 4


def test_whole_weights_of_another_model_are_noticed(folder):
    path = folder / "model.safetensors"
    save_file({n: w + 1 for n, w in load_file(path).items()}, path, metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"model\.safetensors"):
        Translator.from_pretrained(folder)
    write_manifest(folder, *FILES)
    Translator.from_pretrained(folder)


@pytest.mark.parametrize("text", [b"", b"[]", b"\xff\xfe", b'{"config.json": [1]}'])
def test_a_damaged_manifest(folder, text):
    (folder / MANIFEST).write_bytes(text)
    with pytest.raises(ValueError, match=r"^[^\n]*$"):
        require_unchanged(folder, *FILES)


def test_a_download_from_the_hub_is_checked_too(folder, monkeypatch):
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: str(folder))
    Transformer.from_pretrained("someone/something")
    edit(folder / "config.json", lambda whole: whole.update(layer_norm_eps=1e-5))
    with pytest.raises(ValueError, match=r"config\.json"):
        Transformer.from_pretrained("someone/something")
    (folder / MANIFEST).unlink()
    assert Transformer.from_pretrained("someone/something").config.layer_norm_eps == 1e-5


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_in_the_shipped_model_is_noticed(tmp_path, name):
    """Its weights are older than checksums in their header."""
    folder = shutil.copytree(SHIPPED, tmp_path / "copy")
    data = bytearray((folder / name).read_bytes())
    data[data.find(b"1e-06") if name == "config.json" else len(data) * 3 // 4] ^= 2
    (folder / name).write_bytes(data)
    with pytest.raises(ValueError, match=name):
        Translator.from_pretrained(folder)
