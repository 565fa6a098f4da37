"""``transformer translate`` and ``transformer evaluate``."""

import os
import stat
import sys
from dataclasses import replace
from typing import Annotated, Any

import typer

from transformer.cli.frame import (
    DEFAULT_MODEL,
    Alpha,
    BatchSize,
    BeamSize,
    DataDir,
    Device,
    File,
    Model,
    Penalty,
    app,
    file_pair,
)


@app.command()
def translate(
    text: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", show_default="standard input, one sentence per line"),
    ] = None,
    model: Model = DEFAULT_MODEL,
    beam_size: BeamSize = 4,
    alpha: Alpha = 0.6,
    penalty: Penalty = "gnmt",
    batch_size: BatchSize = 64,
    device: Device = None,
) -> None:
    """Translate sentences, or standard input.

    Every input line gives exactly one output line. Standard input is translated in portions of the
    batch size; with --batch-size 1 every line is answered at once.

    \b
    Examples:
      transformer translate "Where is the train station?"
      transformer translate --model runs/smoke < text.en > text.de
    """
    from transformer.inference.device import choose_device
    from transformer.inference.stream import read_lines, translate_lines
    from transformer.inference.translator import Translator

    translator = Translator.from_pretrained(model, choose_device(device))
    lines, at_once = text or read_lines(sys.stdin.buffer), batch_size
    if not text and sys.stdin.isatty():
        typer.echo("one sentence per line; Ctrl-D ends", err=True)
        at_once = 1
    elif not text and _is_file(sys.stdin):
        at_once = 32 * batch_size  # sorting more lines by length reduces padding
    options = dict(beam_size=beam_size, alpha=alpha, penalty=penalty, batch_size=batch_size)
    for translation in translate_lines(translator, lines, at_once, **options):
        typer.echo(translation)


def _is_file(stream: Any) -> bool:
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:
        return False


@app.command()
def evaluate(
    model: Model = DEFAULT_MODEL,
    corpus: Annotated[
        str | None, typer.Option(help="See: transformer corpora.", show_default="tatoeba-en-de")
    ] = None,
    split: Annotated[str, typer.Option(help="Part of the corpus.")] = "test",
    text: Annotated[
        str, typer.Option(help="moses-lowercase for models of lower-cased Moses tokens.")
    ] = "plain",
    source_file: File = None,
    target_file: File = None,
    beam_size: BeamSize = 4,
    alpha: Alpha = 0.6,
    penalty: Penalty = "gnmt",
    batch_size: BatchSize = 64,
    device: Device = None,
    data_dir: DataDir = None,
) -> None:
    """Print BLEU and chrF of a model on a test set.

    The signature after each score records how sacreBLEU computed it.

    \b
    Examples:
      transformer evaluate --model runs/smoke --corpus tatoeba-en-de --split test
      transformer evaluate --source-file test.en --target-file test.de --beam-size 1
    """
    from transformer.data.corpora import load_corpus, load_parallel_files
    from transformer.data.moses import in_form
    from transformer.inference.device import choose_device
    from transformer.inference.translator import Translator
    from transformer.recipes.translation import evaluate as scores_of

    files = file_pair("", source_file, target_file)
    if files is not None and corpus is not None:
        raise ValueError("give either --corpus or files, not both")
    if files is not None and text != "plain":
        raise ValueError("--text needs --corpus, whose languages are known")
    translator = Translator.from_pretrained(model, choose_device(device))
    if files is not None:
        name, pairs = str(files[0]), load_parallel_files(*files)
    else:
        found = load_corpus(corpus or DEFAULT_MODEL, data_dir)
        if split not in found.splits:
            raise ValueError(f"split must be one of {', '.join(found.splits)}, got {split!r}")
        # Do not convert the training text, which is not scored.
        found = replace(found, splits={split: found.splits[split]})
        name, pairs = f"{found.name} {split}", in_form(found, text).splits[split]
    search = f"beam {beam_size}, alpha {alpha} ({penalty})"
    typer.echo(f"{model} on {name}: {len(pairs):,} pairs, {search}")
    shown = sys.stderr.isatty()
    options = beam_size, alpha, batch_size, shown
    kinds: dict[str, Any] = dict(text=text, penalty=penalty)
    for score in scores_of(translator, pairs, *options, **kinds):
        typer.echo(str(score))
