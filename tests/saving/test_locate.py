"""One rule for every place where a trained model may be: package, folder, run, file, Hub."""

import json
import logging
import shutil

import pytest
import torch
from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

from tests.model.small import make_model
from transformer.model.transformer import Transformer
from transformer.saving.hub import write_config, write_weights
from transformer.saving.locate import locate, shipped_names


def model(seed):
    return make_model(seed, dtype=torch.float32)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return model(0).save_pretrained(tmp_path_factory.mktemp("trained") / "model")


@pytest.fixture
def run(tmp_path):
    """The folder of an unfinished run with two checkpoints and a best one."""
    write_config(tmp_path / "run", model(0))
    for seed, name in ((1, "step-00000010"), (2, "step-00000020"), (3, "best")):
        path = tmp_path / "run/checkpoints" / f"{name}.safetensors"
        write_weights(path, model(seed).state_dict())
    return tmp_path / "run"


def loads(name_or_path, seed):
    found = Transformer.from_pretrained(name_or_path).state_dict()
    torch.testing.assert_close(found, model(seed).state_dict(), rtol=0, atol=0)


def test_a_folder_and_a_weight_file_in_it(trained):
    for place in (trained, str(trained), trained / "model.safetensors"):
        loads(place, 0)
    with pytest.raises(FileNotFoundError, match="no file or folder"):
        locate(trained / "nowhere")
    with pytest.raises(ValueError, match=r"config\.json.* must be a folder or a weight file"):
        locate(trained / "config.json")
    (trained.parent / "alone").mkdir(exist_ok=True)
    alone = shutil.copy(trained / "model.safetensors", trained.parent / "alone")
    with pytest.raises(FileNotFoundError, match="its configuration is missing"):
        locate(alone)


def test_an_unfinished_run_is_its_newest_checkpoint_and_says_so(run, caplog):
    with caplog.at_level(logging.INFO, "transformer"):
        loads(run, 2)
    assert "step-00000020" in caplog.text
    loads(run / "checkpoints/step-00000010.safetensors", 1)
    loads(run / "checkpoints/best.safetensors", 3)


def test_a_finished_run_is_its_model(trained, run, caplog):
    shutil.copytree(trained, run / "model")
    (run / "model/tokenizer.json").touch()
    (run / "run.json").write_text('{"steps": 20}')
    with caplog.at_level(logging.INFO, "transformer"):
        loads(run, 0)
    assert caplog.text == ""
    loads(run / "checkpoints/best.safetensors", 3)


@pytest.mark.parametrize("lacking", ["the record", "the last steps", "a tokenizer"])
def test_a_model_that_is_older_than_the_run_or_half_written_is_not_taken(trained, run, lacking):
    shutil.copytree(trained, run / "model")
    if lacking != "a tokenizer":
        (run / "model/tokenizer.json").touch()
    if lacking != "the record":
        steps = 10 if lacking == "the last steps" else 20
        (run / "run.json").write_text(json.dumps({"steps": steps}))
    loads(run, 2)


def test_a_run_without_a_checkpoint(run):
    for path in (run / "checkpoints").iterdir():
        path.unlink()
    with pytest.raises(FileNotFoundError, match="a training run that has no checkpoint"):
        locate(run)
    (run / "checkpoints").rmdir()  # a signal ended it before the first one
    (run / "state.pt").touch()
    with pytest.raises(FileNotFoundError, match="a training run that has no checkpoint"):
        locate(run)


def test_a_shipped_name_wins_over_a_folder(trained, tmp_path, monkeypatch):
    monkeypatch.setattr("transformer.saving.locate.SHIPPED_FOLDER", tmp_path / "shipped")
    monkeypatch.chdir(trained.parent)
    assert shipped_names() == []
    assert locate("model").folder.resolve() == trained
    shutil.copytree(trained, tmp_path / "shipped" / "model")
    (tmp_path / "shipped" / "half").mkdir()
    assert shipped_names() == ["model"]
    assert locate("model").folder == tmp_path / "shipped" / "model"
    assert locate("./model").folder.resolve() == trained


@pytest.mark.parametrize(
    "file, content, hint",
    [
        ("model.bin", "", "CTranslate2Translator"),
        ("encoder.onnx", "", "onnxruntime"),
        ("encoder.pt2", "", r"README\.md"),
        ("pytorch_model.bin", "", "pickle"),
        ("config.json", '{"model_type": "marian"}', r"from_marian\("),
    ],
)
def test_an_exported_folder_says_how_to_use_it(tmp_path, file, content, hint):
    (tmp_path / file).write_text(content)
    if file == "config.json":
        (tmp_path / "model.safetensors").touch()
    with pytest.raises(ValueError, match=hint) as caught:
        locate(tmp_path)
    assert "\n" not in str(caught.value)


def test_options_reach_the_hub_and_what_is_downloaded_is_data(trained, monkeypatch):
    asked = {}

    def download(name, **options):
        asked.update(options, name=name)
        return str(trained)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    Transformer.from_pretrained("someone/something", revision="v2", local_files_only=True)
    assert (asked["name"], asked["revision"], asked["local_files_only"]) == (
        "someone/something",
        "v2",
        True,
    )
    assert {*asked["allow_patterns"]} >= {"config.json", "model.safetensors", "tokenizer.json"}
    assert not [p for p in asked["allow_patterns"] if "*" in p or p.endswith((".bin", ".py"))]


@pytest.mark.parametrize("name", ["tatoeba-xx", "someone/something", "no such folder/at all/here"])
@pytest.mark.parametrize("error", [ConnectionError("no\nnetwork"), RepositoryNotFoundError])
def test_unknown_names_give_one_line(monkeypatch, name, error):
    def refuse(name, **options):
        raise error if isinstance(error, Exception) else error("no\nsuch", response=_Response())

    monkeypatch.setattr("huggingface_hub.snapshot_download", refuse)
    with pytest.raises(FileNotFoundError, match=f"no trained model '{name}'") as caught:
        locate(name)
    assert "\n" not in str(caught.value)


def test_a_gated_repository_says_what_to_do(monkeypatch):
    def refuse(name, **options):
        raise GatedRepoError("no", response=_Response())

    monkeypatch.setattr("huggingface_hub.snapshot_download", refuse)
    with pytest.raises(FileNotFoundError, match="'some/one' .* is gated: accept its conditions"):
        locate("some/one")


class _Response:
    headers: dict = {}
    request = None
