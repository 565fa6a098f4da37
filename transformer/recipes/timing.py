"""How long a run will take here: training, the validations on the way, the evaluation at the end.

Paper: section 5.2
"""

from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory
from time import perf_counter

import torch

from transformer.data.parallel import Split
from transformer.inference.device import choose_device
from transformer.inference.translator import Translator
from transformer.recipes.architectures import build_model
from transformer.recipes.presets import Preset
from transformer.recipes.requirements import Requirements, requirements
from transformer.recipes.throughput import random_batches
from transformer.training.stream import step_batches
from transformer.training.trainer import Trainer

#: Sentences that are translated to see how fast that goes.
_SAMPLE = 64

#: Most tokens of a batch that is timed on a CPU before a run: a larger one would take minutes.
_CPU_BATCH = 1000


@dataclass(frozen=True)
class RunTime:
    """Seconds that are left of a run.

    Args:
        training: optimiser steps.
        validation: perplexity and BLEU on the way.
        evaluation: translating the test splits at the end.

    Paper: section 5.2
    """

    training: float
    validation: float
    evaluation: float

    @property
    def total(self) -> float:
        """Seconds in all.

        Paper: section 5.2
        """
        return self.training + self.validation + self.evaluation


def estimate_time(
    preset: Preset,
    trainer: Trainer,
    translator: Translator,
    validation: Split,
    tests: dict[str, Split],
) -> RunTime:
    """Time a few steps and a few translations, and say how long the rest of a run will take.

    Nothing is changed: weights and random numbers stay as they are. An untrained model does not
    know when to stop, so the translations are cut at somewhat more than the references' length.

    Args:
        preset: the recipe.
        trainer: of the run, wherever that stands.
        translator: of the model in training.
        validation: pairs that are scored on the way.
        tests: splits that are scored at the end, with the last and the averaged weights, by
            greedy search and by the preset's beam.

    Paper: section 5.2
    """
    config = trainer.config
    if config.compile:
        measure_step(trainer)  # pays for the compilation
    step = measure_step(trainer, repeats=20 if trainer.accelerator.device.type == "cuda" else 3)
    left = max(0, config.max_steps - trainer.step)
    validations = -(-config.max_steps // config.validate_every) - (
        trainer.step // config.validate_every
    )
    greedy = _seconds_per_sentence(translator, validation, 1)
    # A forward pass is a third of a step.
    batches = 0 if trainer.validation is None else len(trainer.validation)
    perplexity = batches * step / config.accumulate / 3
    scored = min(preset.score_pairs, len(validation))
    evaluation = 0.0
    for split in tests.values():
        for beam_size in sorted({1, preset.beam_size}):
            evaluation += 2 * len(split) * _seconds_per_sentence(translator, split, beam_size)
    return RunTime(step * left, max(0, validations) * (perplexity + scored * greedy), evaluation)


def measure_step(trainer: Trainer, repeats: int = 3) -> float:
    """Time a step without taking one: weights and random numbers stay as they are.

    Args:
        trainer: of the run, wherever that stands.
        repeats: batches to time, after one to warm up.

    Returns:
        Seconds a step, measured on batches of typical size.

    Paper: section 5.2
    """
    accelerator = trainer.accelerator
    device = accelerator.device
    devices = [device.index or 0] if device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        stream = step_batches(trainer.batches)
        for i in range(repeats + 1):
            batch = next(stream).batches[0].to(device)
            with accelerator.no_sync(trainer.loss), accelerator.autocast():
                loss, _ = trainer.loss(batch.source, batch.target_input, batch.labels, batch.rows)
                (loss / batch.num_target_tokens).backward()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            if i == 0:
                started = perf_counter()
    trainer.optimizer.zero_grad()
    return (perf_counter() - started) / repeats * trainer.config.accumulate


def preview(preset: Preset, price: float | None = None, at_hand: bool = False) -> Requirements:
    """Say what a run needs before its corpus is there: steps are timed on random sentences.

    On a CPU a smaller batch is timed and counted up. Nothing is compiled, so a recipe that
    compiles is faster than this says.

    Args:
        preset: the recipe.
        price: dollars for a device and an hour; None assumes one on a GPU, and none on a CPU.
        at_hand: the corpus is on this machine already.

    Raises:
        ValueError: if ``price`` is negative.

    Paper: section 5.2
    """
    on_gpu = choose_device().type == "cuda"
    budget = preset.training.batch_tokens
    if not on_gpu:
        budget = min(budget, _CPU_BATCH)
    batches = random_batches(preset, batch_tokens=budget)
    config = replace(preset.training, batch_tokens=budget, compile=False)
    with TemporaryDirectory() as folder:
        trainer = Trainer(build_model(preset.model), batches, config, folder, progress=False)
        seconds = measure_step(trainer, repeats=3 if on_gpu else 1)
    return requirements(
        preset,
        seconds=seconds * preset.training.batch_tokens / budget * preset.training.max_steps,
        devices=trainer.accelerator.num_processes,
        price=price,
        on_gpu=on_gpu,
        at_hand=at_hand,
    )


def _seconds_per_sentence(translator: Translator, split: Split, beam_size: int) -> float:
    """Time a search on the first sentences of a split, of about its references' length."""
    sources, references = split.source[:_SAMPLE], split.target[:_SAMPLE]
    lengths = [len(ids) for ids in translator.tokenizer.encode_batch(references)]
    longest = round(1.3 * sum(lengths) / len(lengths)) + 1
    translator.translate(sources[:2], beam_size, max_length=2)  # pays for whatever is made once
    started = perf_counter()
    translator.translate(sources, beam_size, max_length=longest)
    return (perf_counter() - started) / len(sources)
