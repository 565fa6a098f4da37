"""What ``transformer train`` says of a run before the first step."""

from typing import TYPE_CHECKING

from transformer.inference.device import device_label
from transformer.recipes.architectures import architecture
from transformer.recipes.estimate import estimate_time, requirements
from transformer.training.schedule import recipe_schedule

if TYPE_CHECKING:
    from transformer.recipes.translation import TranslationRun


def describe(run: "TranslationRun") -> str:
    """Describe corpus, model, training and device, and estimate disk, memory and time."""
    preset, training = run.preset, run.preset.training
    parameters = run.model.num_parameters()
    shown = ("num_layers", "d_model", "d_ff", "d_hidden", "num_heads", "kernel")
    fields = preset.model.to_dict()
    sizes = [f"{name} {fields[name]}" for name in shown if fields.get(name) is not None]
    accelerator, pairs = run.trainer.accelerator, run.batches.pairs
    processes = accelerator.num_processes
    per_step = training.accumulate * processes
    tests = list(run.tests.values())
    left = estimate_time(preset, run.trainer, run.translator, run.validation, tests)
    on_gpu = accelerator.device.type == "cuda"
    needs = requirements(preset, parameters, left, processes, on_gpu, at_hand=True)
    weights = f", weights of {preset.init_from}" if preset.init_from else ""
    lines = [
        f"{preset.name}: {run.corpus.name}, {len(pairs):,} training pairs, "
        f"{int(pairs.target.lengths().sum()):,} target tokens, "
        f"vocabulary {run.tokenizer.vocab_size:,}",
        *_describe_text(run),
        f"model: {architecture(preset.model)}, {parameters:,} parameters, "
        + ", ".join(sizes)
        + weights,
        f"training: {training.max_steps:,} steps of at most "
        f"{training.batch_tokens * per_step:,} tokens, "
        f"{training.max_steps * per_step / len(run.batches):.1f} epochs, "
        f"{run.trainer.precision}, learning rate up to {_highest_learning_rate(run):.1e}",
        f"device: {device_label(accelerator.device)}, {processes} process{'es' * (processes > 1)}",
        *needs.lines()[1:],  # without the title
        f"folder: {run.folder}",
    ]
    if run.trainer.step >= training.max_steps:
        lines.append(f"already at step {run.trainer.step:,}; no training is left")
    elif run.trainer.step:
        lines.append(f"resuming from step {run.trainer.step:,}")
    return "\n".join(lines)


def _highest_learning_rate(run: "TranslationRun") -> float:
    rate = recipe_schedule(run.preset.training, run.model.config.d_model)
    return max(map(rate, range(1, run.preset.training.max_steps + 1)))


def _describe_text(run: "TranslationRun") -> list[str]:
    preset, splits, files = run.preset, run.corpus.splits, run.corpus.files
    lines = []
    if preset.train_pairs is not None and preset.train_pairs < run.corpus.sizes["train"]:
        lines.append(
            f"capped: the first {preset.train_pairs:,} of {run.corpus.sizes['train']:,} "
            f"training pairs (train_pairs)"
        )
    origins = {name: f" of {source}" for name, (source, _) in files.items()}
    if files:
        origins.setdefault("validation", f" held out of {files['train'][0]}")
    for name, split in splits.items():
        during = name == "validation"
        scored = preset.score_pairs if during else preset.test_pairs
        if name != "train":
            lines.append(f"{name}: {len(split):,} pairs{origins.get(name, '')}")
            if scored and scored < len(split):
                field = "score_pairs" if during else "test_pairs"
                when = " during training" * during
                lines[-1] += f", the first {scored:,} scored{when} ({field})"
    if "validation" in run.tests:
        lines.append("test: none, the final scores are those of validation")
    return lines
