"""What all commands share: help, errors, streams, threads."""

import os
import re
import subprocess
import sys
import tomllib

import pytest

import transformer
from tests.cli.conftest import ROOT, fails, run

COMMANDS = ("train", "translate", "evaluate", "average", "export", "corpora", "info")


def test_help_answers_without_loading_torch():
    code = (
        "import sys, transformer, transformer.cli as c\n"
        "sys.argv[1:] = ['train', '--help']\n"
        "try: c.main()\n"
        "except SystemExit as e: assert not e.code\n"
        "heavy = {'torch', 'numpy', 'tokenizers', 'huggingface_hub'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "from transformer import Translator\n"
        "assert 'torch' in sys.modules"
    )
    process = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True)
    assert process.returncode == 0, process.stderr.decode()
    assert b"transformer train smoke" in process.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_shows_an_example(name):
    shown = run(name, "--help").stdout
    assert re.search(rf"Examples?:\n    +(accelerate.*)?transformer {name}\b", shown)


def test_version_is_that_of_the_distribution():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert run("--version").stdout == f"transformer-book {project['version']}\n"
    assert transformer.__version__ == project["version"]


def test_the_number_of_threads_is_set_before_work_begins(monkeypatch):
    counts = []
    monkeypatch.setattr("torch.set_num_threads", counts.append)
    monkeypatch.setenv("RAYON_NUM_THREADS", "7")
    files = "--source-file", "no.en", "--target-file", "no.de"
    fails("train", "smoke", "--threads", 1, *files, saying="no such file")
    fails("translate", "--threads", 1, "-m", "nothing", "the cat", saying="no trained model")
    fails("evaluate", "--threads", 1, "-m", "nothing", saying="no trained model")
    assert counts == [1, 1, 1] and os.environ["RAYON_NUM_THREADS"] == "1"
    for wrong in (0, 10**30):
        fails("evaluate", "--threads", wrong, saying=f"--threads must be 1 to .*, got {wrong}")


def test_closed_streams_give_no_traceback():
    start = [sys.executable, "-m", "transformer.cli"]
    options = dict(cwd=ROOT, capture_output=True, text=True)
    line = subprocess.run(["sh", "-c", '"$@" translate <&-', "sh", *start], **options)
    assert (line.returncode, line.stdout) == (2, "")
    assert line.stderr == ("transformer: error: standard input is closed; give TEXT or --input\n")
    for task in ("translate Hi", "evaluate"):
        line = subprocess.run(["sh", "-c", f'"$@" {task} >&-', "sh", *start], **options)
        assert line.returncode == 2 and line.stderr.count("\n") == 1
        assert line.stderr.startswith("transformer: error: standard output is closed")
    for closed in (">&-", "<&- >&- 2>&-"):
        line = subprocess.run(["sh", "-c", f'"$@" corpora {closed}', "sh", *start], **options)
        assert (line.returncode, line.stderr) == (0, "")


def test_errors_of_syntax_and_of_ours_are_one_line(monkeypatch):
    fails("translate", "--beem-size", 3, saying="No such option.*--beem-size")
    fails("--beem", saying="No such option: --beem")
    fails("train", saying="Missing argument 'PRESET'")
    fails("translate", "--batch-size", "many", saying="'--batch-size'.* valid integer")

    def fail(name):
        raise LookupError("a\nfault")

    monkeypatch.setattr("transformer.recipes.presets.get_preset", fail)
    said = run("train", "smoke", code=1).stderr
    assert said.startswith("transformer: internal error: LookupError: a fault (")
    assert said.count("\n") == 1
    with pytest.raises(LookupError):
        run("--debug", "train", "smoke")
