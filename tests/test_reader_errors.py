"""Errors of a reader's machine: an old Python, a missing library, no network, no GPU."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import torch
from huggingface_hub import constants
from nbclient import NotebookClient

import transformer
from transformer import Translator
from transformer.cli.train import _without_gpu
from transformer.inference.device import choose_device
from transformer.recipes.presets import PRESETS

ROOT = Path(__file__).resolve().parents[1]


def test_an_old_python_is_told_which_version_is_needed(monkeypatch):
    # Syntax of a later version would fail before the message.
    ast.parse((ROOT / "transformer" / "__init__.py").read_text(), feature_version=(3, 7))
    monkeypatch.setattr(sys, "version_info", (3, 10, 13))
    with pytest.raises(ImportError, match=r"needs Python 3\.11 or newer"):
        transformer._check_environment()


@pytest.mark.parametrize("statement", ["import transformer_book", "from transformer import model"])
def test_a_missing_torch_is_named_with_the_command(statement):
    hide = (
        "import importlib.util as u, sys; old = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name in {'torch', 'tqdm'} else old(name, *a)\n"
    )
    command = [sys.executable, "-c", hide + statement]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    last = found.stderr.strip().splitlines()[-1]
    assert "ModuleNotFoundError: transformer needs torch, tqdm" in last
    assert f"{sys.executable} -m pip install torch tqdm." in last


def test_without_a_network_the_real_client_of_the_hub_gives_one_line(monkeypatch, tmp_path):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="within reach on the Hugging Face Hub"):
        Translator.from_pretrained("no-such-owner/model")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_is_one_line_and_a_large_preset_on_a_cpu_is_warned_of(monkeypatch):
    with pytest.raises(ValueError, match="device must be one of this machine, got 'cuda'"):
        choose_device("cuda")
    (told,) = _without_gpu()
    named = re.search("presets for a CPU are (.*?)\\. ", told)[1]
    assert {*named.replace(" and ", ", ").split(", ")} <= {*PRESETS}
    monkeypatch.setattr("transformer.inference.device.choose_device", lambda: torch.device("cuda"))
    assert _without_gpu() == []


def test_a_name_from_a_skipped_cell_comes_with_a_hint_and_other_errors_do_not(tmp_path):
    sources = [
        "from transformer_book import setup\nsetup()",
        "attention + 1",
        "1 / 0",
        "def f():\n    x += 1\nf()",
    ]
    client = NotebookClient(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources]),
        allow_errors=True,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.delenv("MPLBACKEND", raising=False)
        client.execute()
    first, skipped, *others = [cell.outputs for cell in client.nb.cells]
    assert first == []
    assert "NameError" in {output.get("ename") for output in skipped}
    assert "Is 'attention' made in a cell above?" in "".join(o.get("text", "") for o in skipped)
    names = [[output["ename"] for output in outputs] for outputs in others]
    assert names == [["ZeroDivisionError"], ["UnboundLocalError"]]
