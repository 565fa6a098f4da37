"""What an import costs: names are loaded when they are used, and no library before its time."""

import subprocess
import sys
from pathlib import Path

import transformer

ROOT = Path(transformer.__file__).parent.parent
STANDARD = {*sys.stdlib_module_names, "transformer"}
LOADED = "\nprint(*{name.partition('.')[0] for name in sys.modules})\n"


def loaded(*steps: str) -> list[set[str]]:
    """Top-level names of what a fresh process has loaded after each step."""
    program = "import sys\n" + LOADED.join(steps) + LOADED
    process = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [{*line.split()} for line in process.stdout.splitlines()]


def test_a_name_loads_no_library_that_it_does_not_use():
    start, alone, model, translator, book = loaded(
        "",
        "import transformer",
        "from transformer import Transformer",
        "from transformer import Translator",
        "import transformer.book",
    )
    # Whatever the environment loads into every process is not ours.
    assert alone - start - STANDARD == set()
    assert "torch" in model and "tokenizers" not in model
    spared = {"accelerate", "ctranslate2", "matplotlib", "onnx", "sacrebleu", "typer"}
    assert translator & spared == set()
    assert "IPython" not in book
