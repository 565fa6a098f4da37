"""``transformer train``."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transformer.cli.frame import DataDir, File, Threads, app, file_pair, printed_log, use_threads

if TYPE_CHECKING:  # they import torch
    from transformer.recipes.presets import Preset
    from transformer.recipes.translation import TranslationRun


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
            help="Folder of the run; an unfinished run in it resumes.",
        ),  # fmt: skip
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="Change a field; repeatable."),
    ] = None,
    init_from: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL", help="Fine-tune this model: a shipped one, a path, or a Hub id."
        ),
    ] = None,
    card: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default="the GPU of this machine",
            help="Fit batch and precision to a GPU: t4, 24gb, a100, h100 or h200.",
        ),
    ] = None,
    data_dir: DataDir = None,
    source_file: File = None,
    target_file: File = None,
    valid_source_file: File = None,
    valid_target_file: File = None,
    test_source_file: File = None,
    test_target_file: File = None,
    track: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Also log to tensorboard, wandb, ...; repeatable."),
    ] = None,
    threads: Threads = None,
) -> None:
    """Train a model with a preset and evaluate it.

    The training text is the preset's corpus, or two files of your own whose lines are translations
    of each other. Without validation files, some of these lines are held out. Before a large
    download, the command prints the disk space and the memory that the run needs, and before
    training also its time. Ctrl-C saves and stops; the same command resumes. The model is written
    to DIR/model, and the record of the run to DIR/run.json.

    On a GPU, a preset in half precision is fitted to the card: the tokens per step come in as few
    batches as its memory allows. What you set with --set stays.

    \b
    Examples:
      transformer train smoke
      transformer train tatoeba-small --set d_model=128 --set max_steps=2000
      transformer train tatoeba-small --source-file text.en --target-file text.de -o runs/mine
      transformer train tatoeba-small --init-from tatoeba-en-de --set max_steps=500 \\
          --source-file text.en --target-file text.de -o runs/fine-tuned
      transformer train wmt14-base --card t4
      torchrun --nproc-per-node 8 -m transformer.cli train wmt14-base --set batch_tokens=3125
    """
    from transformer.data.corpora import corpus_from_files
    from transformer.recipes.overrides import parse_changes
    from transformer.recipes.presets import get_preset
    from transformer.recipes.translation import TranslationRun
    from transformer.saving.locate import RECORD

    use_threads(threads)
    recipe = get_preset(preset)
    files = file_pair("", source_file, target_file)
    held_out = (
        file_pair("valid-", valid_source_file, valid_target_file),
        file_pair("test-", test_source_file, test_target_file),
    )
    if files is None and any(held_out):
        raise ValueError("files for validation or test need --source-file and --target-file")
    if files is not None and data_dir is not None:
        raise ValueError("--data-dir is for the preset's corpus; give either it or files")
    if files is not None:
        recipe = recipe.uncapped()
    if init_from is not None:
        recipe = recipe.starting_from(init_from)
    asked = parse_changes(recipe, changes or [])
    if files is not None and "corpus" in asked:
        raise ValueError("give either files or --set corpus=..., not both")
    recipe = recipe.with_changes(**asked)
    folder = output or Path("runs") / preset
    recipe = _fit_to_card(recipe, folder, card, asked)
    # `accelerate launch` starts several processes; only the first prints.
    with printed_log(sys.stdout):
        if files is None:
            _announce(recipe, folder, data_dir)
        corpus = None
        if files is not None:
            source, target = _language(files[0], "source"), _language(files[1], "target")
            corpus = corpus_from_files(files, *held_out, source, target)
        run = TranslationRun(recipe, folder, data_dir, corpus, track or ())
        main = run.trainer.accelerator.is_main_process
        if run.finished() is None:
            _train_and_evaluate(run, typer.echo if main else lambda line: None)
        elif main:
            typer.echo(f"already finished, at step {run.trainer.step:,}; nothing left to do")
    if main:
        typer.echo(f"model: {folder / 'model'}, record: {folder / RECORD}")


def _language(file: Path, side: str) -> str:
    """Return the language at the end of a file's name, as in text.de or text.de.gz, or ``side``."""
    suffix = Path(file.name.removesuffix(".gz").removesuffix(".xz")).suffix[1:]
    return suffix if len(suffix) == 2 and suffix.isalpha() else side


def _fit_to_card(
    recipe: "Preset", folder: Path, name: str | None, asked: dict[str, Any]
) -> "Preset":
    """Fit a recipe to a GPU and print the estimate; a run that has begun keeps its batches."""
    from transformer.recipes.cards import describe_card, get_card, on_card_in, this_card

    card = this_card() if name is None else get_card(name)
    if card is None:
        return recipe
    recipe = on_card_in(recipe, card, folder, asked)
    if _first_process():
        typer.echo("\n".join(describe_card(recipe, card)))
    return recipe


def _first_process() -> bool:
    return int(os.environ.get("RANK", 0)) == 0


def _announce(recipe: "Preset", folder: Path, data_dir: Path | None) -> None:
    """Before a large download, print what the run needs; raise OSError if the disk lacks space."""
    from huggingface_hub.constants import HF_HOME

    from transformer.data.corpora.catalogue import corpus_catalogue
    from transformer.recipes.estimate import LARGE_CORPORA, require_disk, requirements
    from transformer.saving.locate import STATE

    if recipe.corpus not in LARGE_CORPORA or (folder / STATE).exists():
        return
    here = {entry.name: entry.at_hand for entry in corpus_catalogue(data_dir)}
    needs = requirements(recipe, at_hand=here[recipe.corpus])
    if _first_process():
        typer.echo("\n".join([*needs.lines(), *_without_gpu()]))
    cache = Path(os.environ.get("HF_DATASETS_CACHE") or Path(HF_HOME) / "datasets")
    (language,) = {*recipe.corpus.split("-")[1:]} - {"en"}
    kept = cache / "wmt___wmt14" / f"{language}-en"  # where `datasets` keeps this corpus
    require_disk({folder: needs.folder, kept: needs.download + needs.text})


def _train_and_evaluate(run: "TranslationRun", say: Callable[[str], None]) -> None:
    """Run to the end; raise typer.Exit if a signal stops the training."""
    from transformer.recipes.description import describe

    say(describe(run))
    if not run.train():
        say(
            f"stopped at step {run.trainer.step:,} of {run.preset.training.max_steps:,}; all is "
            f"saved in {run.folder}, and the same command resumes"
        )
        raise typer.Exit(128 + (run.trainer.stopped_by or signal.SIGINT))
    run.trainer.accelerator.end_training()
    if run.trainer.accelerator.is_main_process:
        run.finish(say)


def _without_gpu() -> list[str]:
    """Return a warning if a preset of this size would train on a CPU."""
    from transformer.inference.device import choose_device

    if choose_device().type != "cpu":
        return []
    return [
        "device: the CPU, because PyTorch finds no GPU. This preset needs a GPU; presets for a CPU "
        "are smoke, tatoeba-small and multi30k-tiny-cpu. Ctrl-C stops the run."
    ]
