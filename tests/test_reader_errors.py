"""What goes wrong for a reader, on a machine that is not ours, is met by a message that helps."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest
import torch
from huggingface_hub import constants
from huggingface_hub.errors import LocalEntryNotFoundError
from nbclient import NotebookClient
from typer.testing import CliRunner

import transformer
from transformer import Translator
from transformer.cli import app
from transformer.cli.train import _without_gpu
from transformer.data.corpora import load_corpus
from transformer.inference import pretrained
from transformer.inference.device import choose_device
from transformer.recipes.presets import PRESETS
from transformer.recipes.requirements import requirements

ROOT = Path(__file__).resolve().parents[1]


def python(code):
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)


class TestTheEnvironment:
    def test_an_old_python_is_told_which_one_is_needed(self, monkeypatch):
        monkeypatch.setattr(sys, "version_info", (3, 10, 13))
        with pytest.raises(ImportError, match=r"needs Python 3\.11 or newer.*Make an environment"):
            transformer._check_environment()

    def test_it_is_the_python_of_the_project_file(self):
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        assert project["requires-python"] == f">={transformer._PYTHON[0]}.{transformer._PYTHON[1]}"
        assert [line.split(">")[0] for line in project["dependencies"]] == [*transformer._NEEDS]

    def test_the_check_is_read_by_an_old_python(self):
        """Syntax of a later version would be the error in place of the message."""
        source = (ROOT / "transformer" / "__init__.py").read_text()
        ast.parse(source, feature_version=(3, 7))

    @pytest.mark.parametrize(
        "statement",
        ["import transformer", "import transformer.book", "from transformer.model import masks"],
    )
    def test_a_missing_torch_is_named_with_the_command(self, statement):
        hide = (
            "import importlib.util as u, sys; old = u.find_spec\n"
            "u.find_spec = lambda name, *a: None if name in {'torch', 'tqdm'} else old(name, *a)\n"
        )
        found = python(hide + statement)
        last = found.stderr.strip().splitlines()[-1]
        assert "ModuleNotFoundError: transformer needs torch, tqdm, which this Python" in last
        assert f"{sys.executable} -m pip install torch tqdm." in last
        assert "choose the kernel" in last

    def test_the_check_loads_nothing(self):
        code = "import sys, transformer; print({'torch', 'numpy', 'typer'} & {*sys.modules})"
        assert python(code).stdout.strip() == "set()"


class TestTheNetwork:
    @pytest.fixture
    def no_network(self, monkeypatch):
        def fail(*args, **options):
            raise LocalEntryNotFoundError("nothing in the cache")

        monkeypatch.setattr(pretrained, "snapshot_download", fail)

    def test_a_hub_model_out_of_reach_says_what_works_without(self, no_network):
        message = r"'a/b'.*shipped \(tatoeba-en-de\).*within reach.*copy the files config\.json"
        with pytest.raises(FileNotFoundError, match=message):
            Translator.from_pretrained("a/b")

    def test_the_hub_itself_is_asked_without_a_network(self, monkeypatch, tmp_path):
        """Not a stand-in for its errors: the real client, which may not go out."""
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
        with pytest.raises(FileNotFoundError, match="within reach on the Hugging Face Hub"):
            Translator.from_pretrained("nobody-has-this/model")

    def test_a_marian_model_is_sent_to_its_loader(self, no_network):
        name = "Helsinki-NLP/opus-mt-en-de"
        with pytest.raises(FileNotFoundError, match=rf"Marian.*from_marian\('{name}'\) loads"):
            Translator.from_pretrained(name)

    def test_a_corpus_that_cannot_be_downloaded_says_where_to_put_it(self, monkeypatch, tmp_path):
        def fail(*args, **options):
            raise OSError("no network")

        monkeypatch.setattr("urllib.request.urlopen", fail)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        with pytest.raises(OSError, match="data_dir|TRANSFORMER_DATA_DIR"):
            load_corpus("multi30k-en-de")


class TestTheDevice:
    @pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
    def test_a_gpu_that_is_not_there_is_said_in_one_line(self):
        with pytest.raises(ValueError, match="device must be one of this machine, got 'cuda'"):
            choose_device("cuda")

    @pytest.mark.parametrize(
        "device, hours, told", [("cpu", 900, True), ("cpu", 2, False), ("cuda", 900, False)]
    )
    def test_days_on_a_cpu_are_announced(self, monkeypatch, tmp_path, device, hours, told):
        def preview(preset, price, at_hand):
            return requirements(preset, seconds=3600.0 * hours, on_gpu=False)

        def stop(*args, **options):
            raise ValueError("here training would begin")

        monkeypatch.setattr("transformer.recipes.timing.preview", preview)
        monkeypatch.setattr("transformer.recipes.translation.TranslationRun", stop)
        here = "transformer.inference.device.choose_device"
        monkeypatch.setattr(here, lambda: torch.device(device))
        found = CliRunner().invoke(app, ["train", "wmt14-base", "-o", str(tmp_path)])
        assert found.exit_code == 2 and "here training would begin" in found.output
        assert found.output.startswith("timing a step")
        assert ("PyTorch sees no GPU here" in found.output) == told
        assert ("multi30k-tiny-cpu" in found.output) == told


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """Cells that fail on their own, what a notebook shows below them, and which of them failed."""
    sources = [
        "from transformer.book import setup\nsetup()",
        "attention + 1",
        "1 / 0",
        "def f():\n    x += 1\nf()",
    ]
    failed = []
    client = NotebookClient(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources]),
        allow_errors=True,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path_factory.mktemp("empty"))}},
        on_cell_error=lambda cell, cell_index, execute_reply: failed.append(cell_index),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.delenv("MPLBACKEND", raising=False)
        client.execute()
    return [cell.outputs for cell in client.nb.cells], failed


def test_a_name_from_a_skipped_cell_comes_with_a_hint(cells):
    outputs, failed = cells
    assert outputs[0] == [] and failed == [1, 2, 3]
    assert "NameError" in {output.get("ename") for output in outputs[1]}
    said = "".join(output.get("text", "") for output in outputs[1])
    assert "Is 'attention' made in a cell above?" in said and "Run All Above" in said


def test_other_errors_stay_as_they_are(cells):
    names = [[output["ename"] for output in outputs] for outputs in cells[0][2:]]
    assert names == [["ZeroDivisionError"], ["UnboundLocalError"]]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_presets_that_are_named_exist():
    named = re.search("made for a CPU are (.*?)\\. ", *_without_gpu(900.0))[1]
    assert {*named.replace(" and ", ", ").split(", ")} <= {*PRESETS}
