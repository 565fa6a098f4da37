"""Errors of a reader's machine: an old Python, a missing library, no network, no GPU."""

import ast
import re
import sys
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants
from IPython.core.interactiveshell import InteractiveShell

import transformer
from transformer import Translator
from transformer.cli.train import _without_gpu
from transformer.inference.device import choose_device
from transformer.recipes.presets import PRESETS
from transformer_book.skipped_cells import explain_unknown_names

ROOT = Path(__file__).resolve().parents[1]


def test_an_old_python_is_told_which_version_is_needed(monkeypatch):
    # Syntax of a later version would fail before the message.
    ast.parse((ROOT / "transformer" / "__init__.py").read_text(), feature_version=(3, 7))
    monkeypatch.setattr(sys, "version_info", (3, 10, 13))
    with pytest.raises(ImportError, match=r"needs Python 3\.11 or newer"):
        transformer._check_environment()


def test_a_missing_torch_is_named_with_the_command(monkeypatch):
    monkeypatch.setattr(transformer, "find_spec", lambda name: None)
    for name in ("torch", "tqdm"):
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ModuleNotFoundError, match="transformer needs torch, tqdm") as caught:
        transformer._check_environment()
    assert f"{sys.executable} -m pip install torch tqdm." in str(caught.value)


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


def test_a_name_from_a_skipped_cell_comes_with_a_hint_and_other_errors_do_not(capsys):
    shell = InteractiveShell.instance()
    try:
        explain_unknown_names()
        found = [
            shell.run_cell(cell) for cell in ("attention + 1", "1 / 0", "def f(): x += 1\nf()")
        ]
    finally:
        InteractiveShell.clear_instance()
    kinds = [NameError, ZeroDivisionError, UnboundLocalError]
    assert [type(each.error_in_exec) for each in found] == kinds
    said = "".join(capsys.readouterr())
    assert said.count("made in a cell above?") == 1 and "Is 'attention' made" in said
