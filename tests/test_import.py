"""What an import costs: names are loaded when they are used, and no library before its time."""

import subprocess
import sys
from pathlib import Path

import pytest

import transformer

ROOT = Path(transformer.__file__).parent.parent
STANDARD = {*sys.stdlib_module_names, "transformer"}


def loaded(code: str) -> set[str]:
    """Top-level names of what a fresh process has loaded after running ``code``."""
    program = f"{code}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    process = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {*process.stdout.split()}


def test_the_package_alone_loads_nothing_but_itself():
    # Whatever the environment loads into every process is not ours.
    assert loaded("import transformer") - loaded("pass") - STANDARD == set()


@pytest.mark.parametrize(
    ("name", "spared"),
    [
        ("Transformer", {"tokenizers"}),
        ("Translator", set()),
    ],
)
def test_a_model_loads_no_library_that_it_does_not_use(name, spared):
    found = loaded(f"from transformer import {name}")
    assert "torch" in found
    spared = spared | {"accelerate", "ctranslate2", "matplotlib", "onnx", "sacrebleu", "typer"}
    assert found & spared == set()
