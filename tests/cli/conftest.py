"""The command in this process or in one of its own, and a small finished run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import transformer
from transformer.cli import app

ROOT = Path(transformer.__file__).parent.parent
SMALL = dict(
    vocab_size=300, d_model=16, d_ff=16, max_steps=6, batch_tokens=200, warmup_steps=4,
    log_every=1, validate_every=3, save_every=2, keep_last=2, score_pairs=2, beam_size=1,
)  # fmt: skip


def settings(**changes):
    return [word for item in (SMALL | changes).items() for word in ("--set", "{}={}".format(*item))]


def run(*arguments, code=0, input=None, env=None):
    result = CliRunner().invoke(app, [str(a) for a in arguments], input=input, env=env)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def fails(*arguments, saying, input=None):
    """Exit code 2 and one line on standard error."""
    result = run(*arguments, code=2, input=input)
    assert result.stderr.startswith("transformer: error: ")
    assert result.stderr.count("\n") == 1, result.stderr
    assert re.search(saying, result.stderr), result.stderr
    return result


def command(*arguments, launch=(), **options):
    """The command as a process of its own, or several that ``python LAUNCH`` starts."""
    cpu = {"OMP_NUM_THREADS": "1"} | ({"ACCELERATE_USE_CPU": "true"} if launch else {})
    return subprocess.Popen(
        [sys.executable, *launch, "-m", "transformer.cli", *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | cpu,
        **dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) | options,
    )


@pytest.fixture(scope="session")
def text(tmp_path_factory):
    """Two aligned files."""
    folder = tmp_path_factory.mktemp("text")
    nouns = ["cat", "dog", "house", "tree", "river", "train", "book", "window"]
    pairs = [(f"the {a} sees a {b}.", f"le {a} voit un {b}.") for a in nouns for b in nouns]
    (folder / "t.en").write_text("".join(f"{source}\n" for source, _ in pairs))
    (folder / "t.fr").write_text("".join(f"{target}\n" for _, target in pairs))
    return folder / "t.en", folder / "t.fr"


@pytest.fixture(scope="session")
def files(text):
    return "--source-file", text[0], "--target-file", text[1]


@pytest.fixture(scope="session")
def trained(tmp_path_factory, files):
    """The folder of a finished run, which no test may change, and what the command printed."""
    folder = tmp_path_factory.mktemp("runs") / "small"
    return folder, run("train", "smoke", "-o", folder, *files, *settings())
