"""What only a GPU can show: a full step of the paper's models, a whole run, and its speed.

Without a GPU these tests are skipped. They take a few minutes.
"""

import math
import signal

import pytest
import torch

from tests.training.tiny_training import at_step
from transformer.recipes.architectures import build_model
from transformer.recipes.cards import on_card, this_card
from transformer.recipes.estimate import random_batches, requirements
from transformer.recipes.presets import get_preset
from transformer.recipes.translation import TranslationRun
from transformer.training.kept_run import host_copy
from transformer.training.stream import step_batches
from transformer.training.trainer import Trainer
from transformer_book.speed.throughput import measure_throughput

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
    pytest.mark.usefixtures("gpu", "unchecked"),
]

#: Smallest share of the rate of matrix products that a large card must reach with the base model.
FLOOR = 0.2


@pytest.fixture(autouse=True)
def a_process_of_its_own():
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)
    yield
    AcceleratorState._reset_state(reset_partial_state=True)


@pytest.mark.parametrize("name", ["wmt14-base", "wmt14-big"])
def test_a_step_of_25_000_tokens_fits_the_card_as_estimated(tmp_path, name):
    preset = on_card(get_preset(name), this_card())
    batches = random_batches(preset)
    trainer = Trainer(build_model(preset.model), batches, preset.training, tmp_path, progress=False)
    torch.cuda.reset_peak_memory_stats()
    stream = step_batches(batches, preset.training.accumulate)
    for _ in range(3):
        step = next(stream)
        loss = trainer.train_step(step.batches, step.target_tokens)
        trainer.step += 1
    assert math.isfinite(loss.item())
    assert torch.cuda.max_memory_allocated() < 1.2 * requirements(preset, on_gpu=True).device_memory


def test_copies_for_the_disk_are_pinned_and_equal():
    values = dict(a=torch.randn(999, 1001, device="cuda"), b=[torch.arange(5, device="cuda")])
    expected = values["a"].cpu(), values["b"][0].cpu()
    copied = host_copy(values)
    values["a"].zero_()
    for mine, theirs in zip((copied["a"], copied["b"][0]), expected, strict=True):
        assert mine.is_pinned() and torch.equal(mine, theirs)


def test_a_run_from_text_to_score_that_was_stopped(tmp_path):
    preset = get_preset("smoke").with_changes(precision="bf16", compile=True)
    run = TranslationRun(preset, tmp_path / "run")
    at_step(run.trainer, 25, lambda: signal.raise_signal(signal.SIGTERM))
    assert not run.train() and run.trainer.step == 25
    again = TranslationRun(preset, tmp_path / "run")
    assert again.trainer.step == 25 and again.train()
    record = again.finish()
    assert record["steps"] == 60 and record["metrics"]
    assert next(again.model.parameters()).device.type == "cuda"


def test_the_base_model_uses_a_large_card():
    card = this_card()
    if card.memory < 40_000_000_000:
        pytest.skip("the floor is that of a large card")
    preset = on_card(get_preset("wmt14-base"), card)
    found = measure_throughput(preset, random_batches(preset), "random", blocks=2, steps=10)
    assert found["utilisation"] > FLOOR
