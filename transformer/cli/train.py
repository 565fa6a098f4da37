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
            help="Folder of the run. A run that stopped there goes on.",
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="Change a field; can be repeated."),
    ] = None,
    data_dir: DataDir = None,
    source_file: File = None,
    target_file: File = None,
    valid_source_file: File = None,
    valid_target_file: File = None,
    test_source_file: File = None,
    test_target_file: File = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write curves for TensorBoard.")
    ] = False,
    price: Annotated[
        float | None,
        typer.Option(
            metavar="DOLLARS",
            min=0.0,
            show_default="an assumption",
            help="What one device costs an hour, to say what the run will cost.",
        ),
    ] = None,
) -> None:
    """Train a model by a preset and evaluate it.

    It learns from the preset's corpus, or from your own text: two files whose lines translate one
    another. What it needs is said before it starts, and before a large download: disk, memory, time
    and cost. Ctrl-C saves and stops; the same command goes on from there. The trained model lies in
    DIR/model, the recorded run in DIR/run.json.

    \b
    Examples:
      transformer train smoke
      transformer train tatoeba-small --set d_model=128 --set max_steps=2000
      transformer train tatoeba-small --source-file text.en --target-file text.de -o runs/mine
      transformer train wmt14-base --price 2.50
      accelerate launch -m transformer.cli train wmt14-base
    """
    from transformer.data.corpora import corpus_from_files
    from transformer.recipes.overrides import parse_changes
    from transformer.recipes.presets import get_preset
    from transformer.recipes.requirements import LARGE_CORPORA
    from transformer.recipes.timing import preview
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
        first = int(os.environ.get("RANK", 0)) == 0  # `accelerate launch` starts several of us
        if first:
            typer.echo("timing a step of this size, to say what the run needs ...")
        needs = preview(recipe, price, _at_hand(recipe.corpus, data_dir))
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
    say(run.describe(price))
    if not run.train():
        say(
            f"stopped at step {run.trainer.step:,} of {recipe.training.max_steps:,}, all saved in "
            f"{run.folder}; the same command goes on from there"
        )
        raise typer.Exit(128 + (run.trainer.stopped_by or signal.SIGINT))
    run.trainer.accelerator.end_training()
    if run.trainer.accelerator.is_main_process:
        run.finish(say)
        say(f"model: {run.folder / 'model'}, record: {run.folder / 'run.json'}")


def _without_gpu(hours: float | None) -> list[str]:
    """What to say to somebody who trains for days on a CPU, perhaps without knowing."""
    from transformer.inference.device import choose_device

    if hours is None or hours < 24 or choose_device().type != "cpu":
        return []
    return [
        "device: the CPU, since PyTorch sees no GPU here. This preset is made for one; made for a "
        "CPU are smoke, tatoeba-small and multi30k-tiny-cpu. Ctrl-C stops it."
    ]


def _at_hand(corpus: str, data_dir: Path | None) -> bool:
    """Whether a corpus is here already, as far as the user's own files tell."""
    from transformer.data.corpora.catalogue import corpus_catalogue

    return any(entry.at_hand for entry in corpus_catalogue(data_dir) if entry.name == corpus)
