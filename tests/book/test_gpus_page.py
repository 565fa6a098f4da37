"""The commands for several GPUs train on as much text per step as the preset does."""

import re
from pathlib import Path

from transformer.recipes.cards import CARDS, on_card
from transformer.recipes.overrides import parse_changes
from transformer.recipes.presets import get_preset

TEXT = (Path(__file__).parents[2] / "book" / "use" / "gpus.md").read_text(encoding="utf-8")


def test_all_processes_together_see_the_tokens_of_the_preset():
    lines = re.sub(r"\\\n", " ", TEXT)
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
