"""``transformer average`` and ``transformer export``."""

import errno
import re
import shutil
import sys

import pytest

from tests.cli.conftest import fails, run
from transformer.inference.translator import Translator
from transformer.interop import CTranslate2Translator, from_marian


def test_an_unfinished_run_is_its_newest_checkpoint_and_says_so(trained, tmp_path):
    folder = shutil.copytree(trained[0], tmp_path / "run")
    shutil.rmtree(folder / "model")
    said = f"{folder} has no finished model; using its newest checkpoint, step-00000006\n"
    assert run("average", folder, trained[0], "-o", tmp_path / "mean").stderr == said
    assert run("export", folder, tmp_path / "out", "--to", "marian").stderr == said


class TestAverage:
    def test_a_run_and_its_named_checkpoints_give_the_same_model(self, trained, tmp_path):
        shown = run("average", trained[0], "--last", 2).stdout
        assert shown.startswith(f"{trained[0] / 'average-2'}: the mean of step-")
        names = sorted((trained[0] / "checkpoints").glob("step-*"))[-2:]
        run("average", *names, "-o", tmp_path / "mine")
        for name in ("model.safetensors", "config.json", "tokenizer.json"):
            by_run = (trained[0] / "average-2" / name).read_bytes()
            assert by_run == (tmp_path / "mine" / name).read_bytes()
        assert run("translate", "-m", tmp_path / "mine", "the cat").stdout.count("\n") == 1

    def test_bad_input(self, trained, tmp_path):
        fails("average", trained[0], "--last", 9, saying="holds 2 checkpoints, fewer than last=9")
        fails("average", tmp_path / "no", "-o", tmp_path / "o", saying="no trained model")
        fails("average", tmp_path / "no", saying="no does not exist")
        checkpoint = next((trained[0] / "checkpoints").glob("step-*"))
        fails("average", checkpoint, saying="--output must name a folder")
        fails("average", trained[0], tmp_path / "o", "--last", 2, saying="here, write -o OUT")
        both = "average", checkpoint, trained[0], "-o", tmp_path / "o"
        fails(*both, "--last", 2, saying="--last needs the folder of one run as MODEL")
        (tmp_path / "taken").write_text("mine")
        fails("average", checkpoint, "-o", tmp_path, saying="exists; choose another")
        assert (tmp_path / "taken").read_text() == "mine"
        run_folder = shutil.copytree(trained[0], tmp_path / "run")
        broken = run_folder / "checkpoints" / checkpoint.name
        broken.write_bytes(checkpoint.read_bytes()[:-5])
        fails("average", broken, "-o", tmp_path / "o", saying="not a whole safetensors file")
        assert not (tmp_path / "o").exists()


class TestExport:
    def test_every_form_loads_and_translates_as_the_model(self, trained, tmp_path):
        pytest.importorskip("ctranslate2")
        pytest.importorskip("sentencepiece")
        model, to = trained[0] / "model", "ctranslate2"
        wanted = Translator.from_pretrained(model).translate(["the cat"], beam_size=1, max_length=5)
        shown = run(
            "export", model, tmp_path / "c", "--to", "ctranslate2", "--quantization", "int8"
        )
        assert re.fullmatch(r".*c: ctranslate2, int8, 0\.\d MB\n", shown.stdout)
        run("export", trained[0], tmp_path / "f", "--to", to)
        served = CTranslate2Translator(tmp_path / "f", threads=1)
        assert served.translate(["the cat"], beam_size=1, max_length=5) == wanted
        newest = max((trained[0] / "checkpoints").glob("step-*"))
        run("export", newest, tmp_path / "m", "--to", "marian")
        back = from_marian(tmp_path / "m")
        assert back.model.config.d_model == 16
        assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "f", "m"]

    @pytest.mark.parametrize(
        ("options", "saying"),
        [
            (["--to", "tensorflow"], "--to must be one of ctranslate2, marian, .*'tensorflow'"),
            (["--to", "onnx", "--quantization", "int8"], "--quantization is for --to ctranslate2"),
            (["--to", "ctranslate2", "--quantization", "int4"], "quantization must be one of"),
        ],
    )
    def test_bad_options_give_one_line_and_no_folder(self, trained, tmp_path, options, saying):
        fails("export", trained[0], tmp_path / "out", *options, saying=saying)
        assert not list(tmp_path.iterdir())

    def test_a_failure_leaves_nothing_and_what_is_there_stays(self, trained, tmp_path, monkeypatch):
        def fail(translator, folder, *_):
            folder.mkdir()
            (folder / "half").touch()
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("transformer.interop.marian_export.to_marian", fail)
        fails("export", trained[0], tmp_path / "out", "--to", "marian", saying="No space left")
        assert not list(tmp_path.iterdir())
        (tmp_path / "mine").touch()
        fails("export", trained[0], tmp_path, "--to", "marian", saying="exists; choose another")
        assert (tmp_path / "mine").exists()

    def test_a_missing_extra_is_named(self, trained, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "ctranslate2", None)
        saying = re.escape("pip install 'transformer-book[export]'")
        fails("export", trained[0], tmp_path / "out", "--to", "ctranslate2", saying=saying)
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
        fails("export", trained[0], tmp_path / "out", "--to", "onnx", saying=saying)
        assert not list(tmp_path.iterdir())
