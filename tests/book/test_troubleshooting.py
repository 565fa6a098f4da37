"""The code and the commands on the pages about trouble and about several GPUs work."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from transformer.cli import app
from transformer.recipes.cards import CARDS, on_card
from transformer.recipes.overrides import parse_changes
from transformer.recipes.presets import get_preset
from transformer.training.config import TrainingConfig

BOOK = Path(__file__).parents[2] / "book"
TEXT = (BOOK / "troubleshooting.md").read_text(encoding="utf-8")
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


def test_all_gpus_together_see_the_tokens_of_the_preset():
    lines = re.sub(r"\\\n", " ", (BOOK / "use" / "gpus.md").read_text(encoding="utf-8"))
    commands = re.findall(r"^    (torchrun .*) train (wmt14-\S+)(.*)", lines, re.M)
    assert len(commands) == 3
    for launch, name, rest in commands:
        processes = int(re.search(r"--nproc-per-node (\d+)", launch)[1])
        if nodes := re.search(r"--nnodes (\d+)", launch):
            processes *= int(nodes[1])
        preset = get_preset(name)
        asked = parse_changes(preset, re.findall(r"--set (\S+)", rest))
        training = on_card(preset.with_changes(**asked), CARDS["h100"], asked).training
        tokens = processes * training.accumulate * training.batch_tokens
        whole = preset.training.accumulate * preset.training.batch_tokens
        assert 0.99 * whole < tokens <= whole, launch
