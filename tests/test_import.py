"""What an import costs: names are loaded when they are used, and no library before its time."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import transformer

ROOT = Path(transformer.__file__).parent.parent
STANDARD = {*sys.stdlib_module_names, "transformer"}
# The compiler alone takes longer to load than everything else.
UNNEEDED = {
    "accelerate", "ctranslate2", "huggingface_hub", "matplotlib", "onnx", "sacrebleu",
    "torch._dynamo", "typer",
}  # fmt: skip
LOADED = "\nprint(*sys.modules)\n"


def loaded(*steps: str) -> list[set[str]]:
    """Names of the modules that a fresh process has loaded after each step."""
    program = "import sys\n" + LOADED.join(steps) + LOADED
    process = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [{*line.split()} for line in process.stdout.splitlines()]


def libraries(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


# Loading a model draws no random numbers either.
LOAD = """
import random, numpy, torch
from transformer import Translator
def states():
    return torch.get_rng_state().tolist(), repr(numpy.random.get_state()), random.getstate()
before = states()
Translator.from_pretrained("tatoeba-en-de")
assert states() == before
"""


def test_a_name_loads_no_library_that_it_does_not_use():
    start, alone, model, translator, said, command, book = loaded(
        "",
        "import transformer",
        "from transformer import Transformer",
        LOAD,
        "from transformer.cli import app; app(['translate', 'Hello.'], standalone_mode=False)",
        "import transformer_book",
    )
    # Whatever the environment loads into every process is not ours.
    assert libraries(alone - start) - STANDARD == set()
    assert "torch" in model and "tokenizers" not in model
    assert not translator & UNNEEDED and not command & (UNNEEDED - {"typer"})
    assert said == {"Hallo!"} and "IPython" not in book


def test_importing_the_library_changes_nothing_outside_it():
    """The libraries that it uses come first: what they change is theirs."""
    program = """
import importlib, logging, os, pkgutil, random, signal, sys, warnings
import accelerate, huggingface_hub, numpy, sacrebleu, safetensors, tokenizers, torch, typer
import matplotlib, torch.utils.checkpoint, tqdm.auto

def state():
    return dict(
        environment=dict(os.environ), filters=[*warnings.filters], shown=warnings.showwarning,
        threads=(torch.get_num_threads(), torch.get_num_interop_threads()),
        drawn=[torch.get_rng_state().tolist(), str(numpy.random.get_state()), random.getstate()],
        log=(logging.root.level, [*logging.root.handlers]), style=dict(matplotlib.rcParams),
        torch=(torch.get_default_dtype(), torch.is_grad_enabled(), torch.backends.mkldnn.enabled,
               torch.get_float32_matmul_precision(), torch.are_deterministic_algorithms_enabled()),
        signals=[signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
    )

before = state()
import transformer
for module in pkgutil.walk_packages(transformer.__path__, "transformer."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
for name, value in state().items():
    assert value == before[name], (name, before[name], value)
print("transformer.cli.train" in sys.modules)
"""
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True
    )
    assert found.stdout == "True\n", found.stderr


def test_a_notebook_without_ipywidgets_shows_no_warning_of_tqdm():
    program = """
import IPython, sys, warnings
sys.modules |= {"ipykernel.zmqshell": sys, "ipywidgets": None}
from transformer import Trainer, Translator
print("IProgress" in str(warnings.filters))
"""
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (found.stdout, found.stderr) == ("False\n", "")


def test_every_name_of_the_package_has_the_types_that_its_home_gives_it():
    """``TYPE_CHECKING`` imports are what mypy sees, ``_HOMES`` what Python does."""
    tree = ast.parse(Path(transformer.__file__).read_text())
    (block,) = (
        n for n in tree.body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"
    )
    typed = {alias.name: n.module for n in block.body for alias in n.names}
    assert typed == transformer._HOMES
    assert sorted(transformer.__all__) == sorted([*typed, "__version__"])
    for name in transformer.__all__:
        assert getattr(transformer, name) and name in dir(transformer)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        transformer.nothing  # noqa: B018


def test_a_library_is_missed_where_it_is_used(monkeypatch):
    monkeypatch.delitem(vars(transformer), "Trainer", raising=False)
    monkeypatch.setitem(sys.modules, "accelerate", None)
    monkeypatch.delitem(sys.modules, "transformer.training.trainer", raising=False)
    with pytest.raises(ModuleNotFoundError, match="transformer.Trainer needs accelerate") as caught:
        transformer.Trainer  # noqa: B018
    assert f"{sys.executable} -m pip install accelerate" in str(caught.value)
