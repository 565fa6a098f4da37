"""The frame of the command: errors, exit codes, and options that several commands share."""

import atexit
import gc
import io
import logging
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from transformer import __version__

if TYPE_CHECKING:  # it imports torch
    from transformer.inference.options import SearchOptions

# Errors caused by bad input or by this machine; by name if importing the class would import torch.
EXPECTED = (ValueError, TypeError, OSError, ModuleNotFoundError, MemoryError)
EXPECTED_NAMES = ("NonFiniteLossError", "OutOfMemoryError")

#: Most hypotheses, batch size times beam size, that are searched at once.
MOST_HYPOTHESES = 16_384


class OneLineErrors(TyperGroup):
    """Turn errors into one line and an exit code; ``--debug`` keeps the traceback."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options before the name of a command; without any word, show the help."""
        given = [*args]
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if not given or not hasattr(error, "format_message"):
                raise
            _complain(_judge(error)[1])
            raise typer.Exit(2) from None

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code: int | None
            try:
                result = super().invoke(ctx)
                sys.stdout.flush()
                return result
            except KeyboardInterrupt as error:
                _complain(_with_notes("interrupted", error))
                code = 130
            except SystemExit as error:
                if error.code == 128 + signal.SIGTERM:  # see main()
                    _complain(_with_notes("terminated", error))
                raise
            except BrokenPipeError:
                # The reader closed the pipe. Python's flush at exit must not fail again.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                code = 141
            except Exception as error:
                code, line = _judge(error)
                if code is None or ctx.params.get("debug"):
                    raise
                _complain(_with_notes(line, error))
        raise typer.Exit(code)


def _judge(error: Exception) -> tuple[int | None, str]:
    """Return exit code and message of an error; code None if the parser raised it to exit."""
    name = type(error).__name__
    if hasattr(error, "format_message"):  # of a command's syntax
        return 2, f"error: {' '.join(error.format_message().split())}"
    if isinstance(error, (typer.Exit, typer.Abort)):
        return None, ""
    if isinstance(error, EXPECTED) or name in EXPECTED_NAMES:
        return 2, f"error: {_message(error)}"
    if isinstance(error, RuntimeError) and "allocate memory" in str(error):
        return 2, "error: not enough memory; choose a smaller batch or beam, or a smaller model"
    report = "transformer --debug shows where; please report it"
    return 1, f"internal error: {name}: {_message(error)} ({report})"


app = typer.Typer(
    cls=OneLineErrors,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command, as the entry point ``transformer`` does."""
    # Spinning threads become very slow as soon as another program needs a core. OpenMP reads this
    # when torch is imported; a value that the user has set stays.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # At the end Python would search all of torch for unreachable objects, which takes longer than a
    # translation.
    atexit.register(gc.freeze)
    # SIGTERM unwinds the stack like Ctrl-C, so that temporary files are removed.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed, as by >&-
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (until the end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    app(prog_name="transformer")


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    from tqdm import tqdm

    # Above a progress bar, if there is one.
    tqdm.write(f"transformer: warning: {_message(message)}", file=sys.stderr)


def _complain(text: str) -> None:
    typer.echo(f"transformer: {text}", err=True)


def _message(error: Exception | str) -> str:
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    else:
        text = str(error) or type(error).__name__
    return " ".join(text.split())


def _with_notes(line: str, error: BaseException) -> str:
    return "; ".join([line, *getattr(error, "__notes__", ())])


def _version(asked: bool) -> bool:
    if asked:
        typer.echo(f"transformer-book {__version__}")
        raise typer.Exit()
    return asked


@app.callback()
def _options(
    debug: Annotated[
        bool, typer.Option("--debug", envvar="TRANSFORMER_DEBUG", help="Show tracebacks.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Attention Is All You Need: train Transformers on parallel text and translate with them.

    \b
    Example:
      transformer translate "Where is the train station?"
    """


DEFAULT_MODEL = DEFAULT_CORPUS = "tatoeba-en-de"
Model = Annotated[
    str, typer.Option("--model", "-m", help="A shipped model, a folder, or a Hub id owner/name.")
]
BeamSize = Annotated[int, typer.Option(help="Prefixes searched in parallel; 1 is greedy search.")]
Alpha = Annotated[
    float, typer.Option(help="Length penalty; larger values favour long translations.")
]
Penalty = Annotated[
    str, typer.Option(help="gnmt: ((5 + length) / 6)^alpha; fairseq: length^alpha.")
]
BatchSize = Annotated[int, typer.Option(help="Sentences translated at once.")]
Threads = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="CPU threads; fewer leave cores to others.", show_default="all cores"
    ),
]
Device = Annotated[
    str | None, typer.Option(help="cpu, cuda, cuda:1, mps.", show_default="a GPU if there is one")
]
DataDir = Annotated[
    Path | None, typer.Option(help="Folder with your copies of corpus files.", metavar="DIR")
]
File = Annotated[
    Path | None, typer.Option(metavar="FILE", help="UTF-8 text, one sentence per line.")
]


def file_pair(name: str, source: Path | None, target: Path | None) -> tuple[Path, Path] | None:
    """Return both files or None; raise ValueError if only one is given."""
    if (source is None) != (target is None):
        raise ValueError(f"--{name}source-file and --{name}target-file must be given together")
    return None if source is None or target is None else (source, target)


class _LogHandler(logging.StreamHandler[Any]):
    """Print log lines; a closed pipe ends the command, as it does for its other output."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (a name of logging)
        error = sys.exc_info()[1]
        if isinstance(error, BrokenPipeError):
            raise error
        super().handleError(record)


@contextmanager
def printed_log(stream: Any) -> Iterator[None]:
    """Print what the library logs, within ``with printed_log(sys.stdout):``.

    On a terminal, a progress bar replaces the log lines of training.
    """
    logger, training = logging.getLogger("transformer"), logging.getLogger("transformer.training")
    handler = _LogHandler(stream)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    if sys.stdout.isatty() and sys.stderr.isatty():
        training.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
        training.setLevel(logging.NOTSET)


def use_threads(count: int | None) -> None:
    """Limit the threads of this process to 1 up to the number of cores; None leaves them."""
    if count is None:
        return
    cores = os.cpu_count() or 1
    if not 1 <= count <= cores:
        raise ValueError(f"--threads must be 1 to {cores}, the cores of this machine, got {count}")
    os.environ["RAYON_NUM_THREADS"] = str(count)  # for the tokenizers library
    import torch

    torch.set_num_threads(count)


def search_options(
    beam_size: int, alpha: float, penalty: str, batch_size: int, n_best: int | None = None
) -> "SearchOptions":
    """Return search options; raise ValueError if they are out of range or take too much memory."""
    from transformer.inference.options import SearchOptions

    if batch_size < 1:
        raise ValueError(f"--batch-size must be at least 1, got {batch_size}")
    if beam_size * batch_size > MOST_HYPOTHESES:
        raise ValueError(
            f"--beam-size x --batch-size must be at most {MOST_HYPOTHESES:,} hypotheses at once, "
            f"got {beam_size} x {batch_size} = {beam_size * batch_size:,}"
        )
    kind: Any = penalty  # SearchOptions refuses an unknown one
    return SearchOptions(beam_size, alpha, kind, n_best=n_best)


def require_output() -> None:
    """Raise OSError if standard output is closed."""
    if sys.__stdout__ is None:  # main() replaces sys.stdout only
        raise OSError("standard output is closed; nothing would show the results")


def require_free(folder: Path) -> None:
    """Raise FileExistsError unless ``folder`` is absent or empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(f"{folder} exists; choose another folder")
