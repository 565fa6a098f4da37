"""``transformer train``."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from transformer.cli.frame import DataDir, File, app, file_pair


@app.command()
def train(
    preset: Annotated[str, typer.Argument(metavar="PRESET", help="See: transformer info.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            show_default="runs/PRESET",
            help="Folder of the run; a run that stopped there resumes.",
        ),  # fmt: skip
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="Change a field; repeatable."),
    ] = None,
    data_dir: DataDir = None,
    source_file: File = None,
    target_file: File = None,
    valid_source_file: File = None,
    valid_target_file: File = None,
    test_source_file: File = None,
    test_target_file: File = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write TensorBoard curves.")
    ] = False,
) -> None:
    """Train a model with a preset and evaluate it.

    The training text is the preset's corpus, or two files of yours whose lines are translations of
    each other. Before it starts, and before a large download, the command prints the disk space,
    memory and time that the run needs. Ctrl-C saves and stops; the same command resumes. The model
    is written to DIR/model, the record of the run to DIR/run.json.

    \b
    Examples:
      transformer train smoke
      transformer train tatoeba-small --set d_model=128 --set max_steps=2000
      transformer train tatoeba-small --source-file text.en --target-file text.de -o runs/mine
      transformer train wmt14-base --set precision=fp16
      accelerate launch -m transformer.cli train wmt14-base
    """
    from transformer.data.corpora import corpus_from_files
    from transformer.recipes.estimate import LARGE_CORPORA, preview
    from transformer.recipes.overrides import parse_changes
    from transformer.recipes.presets import get_preset
    from transformer.recipes.translation import TranslationRun

    recipe = get_preset(preset)
    recipe = recipe.with_changes(**parse_changes(recipe, changes or []))
    files = file_pair("", source_file, target_file)
    held_out = (
        file_pair("valid-", valid_source_file, valid_target_file),
        file_pair("test-", test_source_file, test_target_file),
    )
    if files is None and any(held_out):
        raise ValueError("files for validation or test need --source-file and --target-file")
    folder = output or Path("runs") / preset
    if files is None and recipe.corpus in LARGE_CORPORA and not (folder / "state.pt").exists():
        first = int(os.environ.get("RANK", 0)) == 0  # `accelerate launch` starts several processes
        if first:
            typer.echo("timing a step of this size to estimate what the run needs ...")
        needs = preview(recipe, _at_hand(recipe.corpus, data_dir))
        if first:
            typer.echo("\n".join([*needs.lines(), *_without_gpu(needs.hours)]))
    run = TranslationRun(
        recipe,
        folder,
        data_dir,
        corpus=None if files is None else corpus_from_files(files, *held_out),
        tensorboard=tensorboard,
    )
    say: Callable[[str], None] = (
        typer.echo if run.trainer.accelerator.is_main_process else lambda line: None
    )
    say(run.describe())
    if not run.train():
        say(
            f"stopped at step {run.trainer.step:,} of {recipe.training.max_steps:,}, all saved in "
            f"{run.folder}; the same command resumes"
        )
        raise typer.Exit(128 + (run.trainer.stopped_by or signal.SIGINT))
    run.trainer.accelerator.end_training()
    if run.trainer.accelerator.is_main_process:
        run.finish(say)
        say(f"model: {run.folder / 'model'}, record: {run.folder / 'run.json'}")


def _without_gpu(hours: float | None) -> list[str]:
    """Return a warning for a training of days on a CPU."""
    from transformer.inference.device import choose_device

    if hours is None or hours < 24 or choose_device().type != "cpu":
        return []
    return [
        "device: the CPU, because PyTorch sees no GPU. This preset needs a GPU; presets for a CPU "
        "are smoke, tatoeba-small and multi30k-tiny-cpu. Ctrl-C stops the run."
    ]


def _at_hand(corpus: str, data_dir: Path | None) -> bool:
    """Return whether a corpus is available without a download."""
    from transformer.data.corpora.catalogue import corpus_catalogue

    return any(entry.at_hand for entry in corpus_catalogue(data_dir) if entry.name == corpus)
