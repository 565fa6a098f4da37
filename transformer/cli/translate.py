"""``transformer translate`` and ``transformer evaluate``."""

import os
import shlex
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transformer.cli.frame import (
    DEFAULT_CORPUS,
    DEFAULT_MODEL,
    Alpha,
    BatchSize,
    BeamSize,
    DataDir,
    Device,
    File,
    Model,
    Penalty,
    Threads,
    app,
    file_pair,
    printed_log,
    require_output,
    search_options,
    use_threads,
)

if TYPE_CHECKING:  # it imports torch
    from transformer.inference.results import Translation


@app.command()
def translate(
    text: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", show_default="standard input, one sentence per line"),
    ] = None,
    input_file: Annotated[
        str | None,
        typer.Option("--input", "-i", metavar="FILE", help="UTF-8 text; - is standard input."),
    ] = None,
    output_file: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="New file for the translations."),
    ] = None,
    model: Model = DEFAULT_MODEL,
    beam_size: BeamSize = 4,
    alpha: Alpha = 0.6,
    penalty: Penalty = "gnmt",
    n_best: Annotated[
        int | None,
        typer.Option(metavar="N", help="Print N translations, each after its line number."),
    ] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Print log-probability / length penalty in front.")
    ] = False,
    split_sentences: Annotated[
        bool, typer.Option("--split-sentences", help="Translate each sentence of a line alone.")
    ] = False,
    batch_size: BatchSize = 64,
    threads: Threads = None,
    device: Device = None,
) -> None:
    """Translate sentences, a file, or standard input.

    Every input line gives exactly one output line, unless --n-best asks for more. Standard input is
    translated one batch at a time; with --batch-size 1 each line is translated as it arrives.
    Columns are separated by tabs: line number (--n-best), score (--scores), translation. A sentence
    in capitals is translated as if it were in lower case, and its translation printed in capitals.
    If an error ends the command, the finished translations are in FILE.partial.

    \b
    Examples:
      transformer translate "Where is the train station?"
      transformer translate --input text.en --output text.de --model runs/smoke
      transformer translate --n-best 3 --scores "It is getting late."
      cat text.en | transformer translate > text.de
    """
    options = search_options(beam_size, alpha, penalty, batch_size, n_best)
    lines, name = _lines(text, input_file)
    if output_file is None:
        require_output()
    elif output_file.exists():
        raise FileExistsError(f"{output_file} exists; choose another file")
    elif (partial := _partial(output_file)).exists():
        raise FileExistsError(
            f"{partial} exists, from a command that has not finished; rename or delete it"
        )
    if split_sentences and n_best is not None:
        raise ValueError("give either --split-sentences or --n-best, not both")
    use_threads(threads)
    from transformer.inference.device import choose_device
    from transformer.inference.sentences import import_sentencex
    from transformer.inference.stream import translate_lines
    from transformer.inference.translator import Translator

    if split_sentences:
        import_sentencex()
    chosen = choose_device(device)
    at_once = batch_size
    if name == "a terminal":
        typer.echo("one sentence per line; Ctrl-D to end", err=True)
        at_once = 1
    elif name == "a file":
        at_once = 32 * batch_size  # sorting more lines by length reduces padding
    with printed_log(sys.stderr):
        translator = Translator.from_pretrained(model, device=chosen)
    found = translate_lines(
        translator,
        lines,
        at_once,
        options=options,
        batch_size=batch_size,
        split_sentences=split_sentences,
        return_scores=True,
    )
    rows = _rows(found, scores)
    if output_file is None:
        for row in rows:
            typer.echo(row)
    else:
        _write(output_file, rows)


def _lines(text: list[str] | None, input_file: str | None) -> tuple[Iterable[str], str]:
    """Return the lines to translate, and "a terminal", "a file" or "a pipe"."""
    from transformer.data.lines import iterate_lines
    from transformer.inference.stream import read_lines

    if text and input_file is not None:
        raise ValueError("give either TEXT or --input, not both")
    if text and len(text) == 1 and (text[0] == "-" or os.path.isfile(text[0])):
        raise ValueError(
            f"{text[0]!r} would be translated as text; for a file, use --input "
            f"{shlex.quote(text[0])}"
        )
    if text:
        return text, "a pipe"
    if input_file is not None and input_file != "-":
        if input_file.endswith((".gz", ".xz")):
            return iterate_lines(input_file, may_be_empty=True), "a file"
        file = open(input_file, "rb")  # noqa: SIM115 (until the end)
        return read_lines(file, input_file), "a file"
    if sys.stdin is None:
        raise OSError("standard input is closed; give TEXT or --input")
    return read_lines(sys.stdin.buffer), _kind(sys.stdin)


def _kind(stream: Any) -> str:
    if stream.isatty():
        return "a terminal"
    try:
        regular = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:
        regular = False
    return "a file" if regular else "a pipe"


def _rows(found: "Iterable[Translation | list[Translation]]", scores: bool) -> Iterator[str]:
    for number, best in enumerate(found, 1):
        for translation in best if isinstance(best, list) else [best]:
            cells = [str(number)] if isinstance(best, list) else []
            if scores:
                cells.append(f"{translation.score:.4f}")
            yield "\t".join([*cells, translation.text])


def _partial(path: Path) -> Path:
    return path.with_name(f"{path.name}.partial")


def _write(path: Path, rows: Iterable[str]) -> None:
    """Write each row to ``PATH.partial`` as it comes, and rename the file when it is complete.

    If an error ends the run, its note names the partial file.
    """
    from tqdm import tqdm

    from transformer.saving.files import cannot_write

    partial = _partial(path)
    try:
        partial.parent.mkdir(parents=True, exist_ok=True)
        partial.touch(exist_ok=False)
    except OSError as error:
        raise cannot_write(partial, error) from error
    try:
        for row in tqdm(rows, unit=" lines", disable=None):
            try:
                with open(partial, "a", encoding="utf-8", newline="\n") as file:
                    file.write(f"{row}\n")
            except OSError as error:  # those of the translation are not about this file
                raise cannot_write(path, error) from error
        partial.replace(path)
    except BaseException as error:
        if partial.stat().st_size:
            error.add_note(f"the translations before it are in {partial}")
        else:
            partial.unlink()
        raise


@app.command()
def evaluate(
    model: Model = DEFAULT_MODEL,
    corpus: Annotated[
        str | None, typer.Option(help="See: transformer corpora.", show_default=DEFAULT_CORPUS)
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Part of the corpus.", show_default="test")
    ] = None,
    text: Annotated[
        str, typer.Option(help="moses-lowercase for models trained on lower-cased Moses tokens.")
    ] = "plain",
    source_file: File = None,
    target_file: File = None,
    beam_size: BeamSize = 4,
    alpha: Alpha = 0.6,
    penalty: Penalty = "gnmt",
    batch_size: BatchSize = 64,
    threads: Threads = None,
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
    files = file_pair("", source_file, target_file)
    if files is not None and corpus is not None:
        raise ValueError("give either --corpus or files, not both")
    if files is not None and (split is not None or data_dir is not None):
        raise ValueError("--split and --data-dir need --corpus, not files")
    if files is not None and text != "plain":
        raise ValueError("--text needs --corpus, whose languages are known")
    options = search_options(beam_size, alpha, penalty, batch_size)
    require_output()
    use_threads(threads)
    from transformer.data.corpora import load_corpus, load_parallel_files
    from transformer.data.moses import in_form
    from transformer.inference.device import choose_device
    from transformer.inference.translator import Translator
    from transformer.recipes.evaluation import evaluate as scores_of
    from transformer.saving.locate import locate

    chosen = choose_device(device)
    locate(model)  # report a missing model before reading the text
    if files is not None:
        name, pairs = str(files[0]), load_parallel_files(*files)
    else:
        found = load_corpus(DEFAULT_CORPUS if corpus is None else corpus, data_dir)
        split = "test" if split is None else split
        if split not in found.splits:
            raise ValueError(f"split must be one of {', '.join(found.splits)}, got {split!r}")
        # Do not convert the training text, which is not scored.
        found = replace(found, splits={split: found.splits[split]})
        name, pairs = f"{found.name} {split}", in_form(found, text).splits[split]
    with printed_log(sys.stderr):
        translator = Translator.from_pretrained(model, device=chosen)
    typer.echo(
        f"{model} on {name}: {len(pairs):,} pairs, beam {beam_size}, alpha {alpha} ({penalty})"
    )
    shown = sys.stderr.isatty()
    kinds: dict[str, Any] = dict(batch_size=batch_size, progress=shown, text=text)
    for score in scores_of(translator, pairs, options, **kinds):
        typer.echo(str(score))
