"""The program in the README of an export, run without this package, translates as ours does."""

import json
import os
import re
import subprocess
import sys
from functools import cache

import pytest

from transformer.inference.translator import Translator
from transformer.interop import to_ctranslate2, to_graphs, to_marian

TEXTS = [
    "Hello!",
    "Where is the train station?",
    "He has  two dogs.",  # two blanks
    "I don't know what she said to you yesterday, but it was not what you wanted to hear.",
]
# Greedy search where the program's is.
EXPORTS = dict(
    ctranslate2=(to_ctranslate2, dict()),
    marian=(to_marian, dict()),
    onnx=(lambda *where: to_graphs(*where, "onnx"), dict(beam_size=1)),
    torch=(lambda *where: to_graphs(*where, "torch"), dict(beam_size=1)),
)


@cache
def shipped():
    return Translator.from_pretrained("tatoeba-en-de")


def run_program(folder, texts):
    report = 'import json, sys\nassert "transformer" not in sys.modules\n'
    report += f"print(json.dumps([translate(text) for text in {texts!r}]))"
    program = re.search(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)[1]
    command = [sys.executable, "-c", program + report]
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("form", EXPORTS)
def test_the_program_translates_as_ours(tmp_path, form, unchecked):
    export, options = EXPORTS[form]
    export(shipped(), tmp_path)
    assert run_program(tmp_path, TEXTS) == shipped().translate(TEXTS, **options)
    readme = (tmp_path / "README.md").read_text()
    # Data and licence go with the weights; Hugging Face reads how to load them.
    assert readme.startswith("---\n") and "license: cc-by-2.0" in readme
    assert "library_name: transformer-book" not in readme
