"""The code and the commands on the troubleshooting page work."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from transformer.cli import app
from transformer.training.config import TrainingConfig

TEXT = (Path(__file__).parents[2] / "book" / "troubleshooting.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)


@pytest.mark.parametrize("number", range(len(PYTHON)))
def test_the_code_runs(number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(PYTHON[number], f"block {number}", "exec"), {})


def test_the_commands_and_their_options_exist():
    lines = re.sub(r"\\\n", " ", "".join(re.findall(r"^```bash\n(.*?)^```", TEXT, re.M | re.S)))
    commands = re.findall(r"^(?:transformer|python -m transformer\.cli) (\w+)(.*)", lines, re.M)
    assert commands
    for command, rest in commands:
        usage = CliRunner().invoke(app, [command, "--help"]).output
        assert "Usage" in usage
        assert all(option in usage for option in re.findall(r" (--[\w-]+)", rest))
        assert all(hasattr(TrainingConfig(), field) for field in re.findall(r"--set (\w+)=", rest))
