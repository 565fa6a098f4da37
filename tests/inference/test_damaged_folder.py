"""A bit that flips in any file of a saved translator is noticed, or changes nothing."""

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

import huggingface_hub.hub_mixin
import pytest
import torch
from huggingface_hub.errors import EntryNotFoundError
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from transformer.data.tokenizer import Tokenizer
from transformer.inference.pretrained import SHIPPED_FOLDER
from transformer.inference.translator import Translator
from transformer.model import hub
from transformer.model.manifest import MANIFEST, require_unchanged, write_manifest
from transformer.model.transformer import Transformer
from transformer.training import checkpoint
from transformer.training.checkpoint import load_pretrained, save_pretrained

FILES = ("config.json", "model.safetensors", "tokenizer.json")
SHIPPED = SHIPPED_FOLDER / "tatoeba-en-de"


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(["Where is the train station?", "Grüße aus Köln"] * 3, 270)


@pytest.fixture(scope="module")
def saved(small_transformer, tokenizer, tmp_path_factory):
    model = small_transformer(tokenizer.vocab_size, max_length=80)
    return save_pretrained(model, tokenizer, tmp_path_factory.mktemp("saved") / "model")


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "copy")


@pytest.fixture
def unchecked(monkeypatch):
    """As outside the tests, where no annotation is checked."""
    monkeypatch.setattr("jaxtyping.config.jaxtyping_disable", True)


def content(translator):
    weights = {name: w.tolist() for name, w in translator.model.state_dict().items()}
    return translator.model.config, translator.tokenizer.to_json(), weights


def positions(name, data):
    """Every byte of the small files and of the header of the weights, and some of the rest."""
    if name in ("config.json", MANIFEST):
        return range(len(data))
    start = int.from_bytes(data[:8], "little") + 8 if name == "model.safetensors" else 0
    return [*range(0, start, 23), *range(start, len(data), (len(data) - start) // 60)]


@pytest.mark.parametrize("name", [*FILES, MANIFEST])
def test_a_flipped_bit_is_noticed_or_changes_nothing(saved, folder, name, unchecked):
    whole, noticed = content(Translator.from_pretrained(saved)), 0
    data = (saved / name).read_bytes()
    places = positions(name, data)
    for place in places:
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 7  # the highest bit never: it makes no JSON at all
        (folder / name).write_bytes(damaged)
        try:
            found = Translator.from_pretrained(folder)
        except ValueError as error:
            # A wrong checksum makes the file suspect to which it belongs.
            assert name in str(error) or (name == MANIFEST and "is not as it was" in str(error))
            assert "\n" not in str(error)
            noticed += 1
        else:
            assert content(found) == whole, place
    # A blank may become another one, and the name of a file or a tensor's padding another name.
    assert noticed > 0.5 * len(places)


def edit(path, change):
    """Change what a JSON file holds, by hand."""
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def swap_merges(content):
    merges = content["model"]["merges"]
    merges[:2] = merges[1::-1]


@pytest.mark.parametrize(
    "name, change",
    [
        ("config.json", lambda content: content.update(layer_norm_eps=1e-5)),
        ("config.json", lambda content: content.update(attention_scale=0.25)),
        ("tokenizer.json", swap_merges),
    ],
)
def test_a_file_changed_by_hand_is_named_and_there_is_a_way(saved, folder, name, change):
    edit(folder / name, change)
    loaders = [Translator.from_pretrained, load_pretrained]
    for load in loaders + [Transformer.from_pretrained] * (name == "config.json"):
        with pytest.raises(ValueError, match=f"{name} is not as it was saved") as caught:
            load(folder)
        assert f"remove its {MANIFEST}" in str(caught.value)
    (folder / MANIFEST).unlink()  # nothing else is wrong with it
    assert content(Translator.from_pretrained(folder)) != content(Translator.from_pretrained(saved))


@pytest.mark.parametrize("after", range(5))
def test_saving_that_is_stopped_between_two_files(saved, folder, tokenizer, monkeypatch, after):
    """Afterwards the folder holds the old model, the new one, or is refused: never a mixture."""
    model, _ = load_pretrained(folder)
    for weight in model.parameters():
        weight.data.add_(1)
    other = Tokenizer.train(["quite another text of words and words"] * 2, tokenizer.vocab_size)
    rest, replace = iter(range(after)), os.replace

    def stop(source, target):
        if Path(target).parent == folder and next(rest, None) is None:
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(checkpoint.os, "replace", stop)
    with suppress(KeyboardInterrupt):
        save_pretrained(model, other, folder)
    found = None
    with suppress(ValueError):
        found = content(Translator.from_pretrained(folder))
    old, new = content(Translator.from_pretrained(saved)), content(Translator(model, other))
    assert found in (old, new, None)
    assert found == (old if after == 0 else new) or 0 < after < 4


def test_other_line_ends_and_blanks_are_no_damage(saved, folder):
    for name in ("config.json", "tokenizer.json", MANIFEST):
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data.replace(b"\n", b"\r\n"))
    assert content(Translator.from_pretrained(folder)) == content(Translator.from_pretrained(saved))


def test_weights_of_another_model_are_noticed_though_they_are_whole(folder):
    """As when saving was stopped between two files."""
    path = folder / "model.safetensors"
    with safe_open(path, "pt") as file:
        assert "crc32" in file.metadata()
    other = {name: w + 1 for name, w in load_file(path).items()}
    save_file(other, path, metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"model\.safetensors is not as it was saved"):
        Translator.from_pretrained(folder)
    write_manifest(folder, *FILES)
    Translator.from_pretrained(folder)


def test_a_model_saved_alone_forgets_the_checksum_of_the_tokenizer_before(folder, tokenizer):
    model = Transformer.from_pretrained(folder)
    with torch.no_grad():
        model.output_weight.add_(1)
    model.save_pretrained(folder)
    assert sorted(json.loads((folder / MANIFEST).read_text())) == ["config.json", FILES[1]]
    other = Tokenizer.train(["quite another text"], 268)
    other.save(folder / "tokenizer.json")
    assert Translator.from_pretrained(folder).tokenizer.to_json() == other.to_json()


@pytest.mark.parametrize("text", [b"", b"[]", b"7", b"\xff\xfe", b"[" * 100_000, b'{"config.json'])
def test_a_manifest_that_is_none(folder, text):
    (folder / MANIFEST).write_bytes(text)
    with pytest.raises(ValueError, match=f"{MANIFEST} (is damaged|must hold)") as caught:
        require_unchanged(folder, *FILES)
    assert "\n" not in str(caught.value)


def test_a_manifest_without_text_for_a_checksum(folder):
    (folder / MANIFEST).write_text('{"config.json": [1]}')
    with pytest.raises(ValueError, match=r"config\.json is not as it was saved"):
        Translator.from_pretrained(folder)


@pytest.mark.parametrize("with_checksums", [True, False])
def test_a_model_from_the_hub_is_compared_too(folder, tmp_path, monkeypatch, with_checksums):
    """Its cache is a folder like any other."""
    if not with_checksums:
        (folder / MANIFEST).unlink()

    def download(repo_id: str, filename: str, **_) -> str:
        if not (folder / filename).exists():
            raise EntryNotFoundError("no such file")
        (tmp_path / "cache").mkdir(exist_ok=True)
        return shutil.copy(folder / filename, tmp_path / "cache")

    monkeypatch.setattr(huggingface_hub.hub_mixin, "hf_hub_download", download)
    monkeypatch.setattr(hub, "hf_hub_download", download)
    Transformer.from_pretrained("someone/something")
    edit(folder / "config.json", lambda content: content.update(layer_norm_eps=1e-5))
    if with_checksums:
        with pytest.raises(ValueError, match=r"config\.json is not as it was saved"):
            Transformer.from_pretrained("someone/something")
    else:
        assert Transformer.from_pretrained("someone/something").config.layer_norm_eps == 1e-5


def test_the_shipped_model_has_its_checksums(tmp_path):
    """Its weights are older than checksums in their header."""
    assert sorted(json.loads((SHIPPED / MANIFEST).read_text())) == sorted(FILES)
    folder = shutil.copytree(SHIPPED, tmp_path / "copy")
    for name in FILES:
        data = bytearray((folder / name).read_bytes())
        place = data.find(b"1e-06") if name == "config.json" else len(data) * 3 // 4
        data[place] ^= 2
        (folder / name).write_bytes(data)
        with pytest.raises(ValueError, match=name):
            Translator.from_pretrained(folder)
        shutil.copy(SHIPPED / name, folder)
    Translator.from_pretrained(folder)
