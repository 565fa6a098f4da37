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


def test_a_name_loads_no_library_that_it_does_not_use():
    start, alone, model, translator, book = loaded(
        "",
        "import transformer",
        "from transformer import Transformer",
        "from transformer import Translator; Translator.from_pretrained('tatoeba-en-de')",
        "import transformer_book",
    )
    # Whatever the environment loads into every process is not ours.
    assert libraries(alone - start) - STANDARD == set()
    assert "torch" in model and "tokenizers" not in model
    assert not translator & UNNEEDED
    assert "IPython" not in book


def test_the_command_loads_no_library_that_a_translation_does_not_need():
    run = "from transformer.cli import app; app(['translate', 'Hello.'], standalone_mode=False)"
    _, _, after = loaded("", run)[:3]
    assert "torch" in after and not after & (UNNEEDED - {"typer"})


def test_loading_a_model_draws_no_random_numbers():
    program = """
import random, numpy, torch
from transformer import Translator
def states():
    return torch.get_rng_state().tolist(), repr(numpy.random.get_state()), random.getstate()
before = states()
Translator.from_pretrained("tatoeba-en-de")
assert states() == before
"""
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


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
    hide = "import sys; sys.modules |= {'ipykernel.zmqshell': sys, 'ipywidgets': None}; "
    show = "; import warnings; print('IProgress' in str(warnings.filters))"
    for imports in ("import transformer, tqdm.auto", "from transformer import Trainer, Translator"):
        command = [sys.executable, "-c", f"import IPython; {hide}{imports}{show}"]
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


def test_a_library_is_missed_only_where_it_is_used():
    hide = "import sys; sys.modules['accelerate'] = None; sys.modules['matplotlib'] = None\n"
    program = "from transformer import Translator\nfrom transformer import Trainer\n"
    found = subprocess.run(
        [sys.executable, "-c", hide + program], cwd=ROOT, capture_output=True, text=True
    )
    assert "transformer.Trainer needs accelerate" in found.stderr.splitlines()[-1]
    assert f"{sys.executable} -m pip install accelerate" in found.stderr
