"""The frame of the command: errors, exit codes, and options that several commands share."""

import io
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from transformer import __version__

# Errors of bad input or of this machine; by name if importing the class would import torch.
EXPECTED = (ValueError, TypeError, OSError, ModuleNotFoundError)
EXPECTED_NAMES = ("NonFiniteLossError", "OutOfMemoryError")


class OneLineErrors(TyperGroup):
    """Turn errors into one line and an exit code; ``--debug`` keeps the traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                result = super().invoke(ctx)
                sys.stdout.flush()
                return result
            except KeyboardInterrupt:
                _complain("interrupted")
                code = 130
            except BrokenPipeError:
                # The reader closed the pipe. Python's flush at exit must not fail again.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                code = 141
            except Exception as error:
                known = isinstance(error, EXPECTED) or type(error).__name__ in EXPECTED_NAMES
                if ctx.params.get("debug") or not known:
                    raise
                _complain(f"error: {_message(error)}")
                code = 2
        raise typer.Exit(code)


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
    # SIGTERM unwinds the stack like Ctrl-C, so that temporary files are removed.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    app(prog_name="transformer")


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _complain(f"warning: {_message(message)}")


def _complain(text: str) -> None:
    typer.echo(f"transformer: {text}", err=True)


def _message(error: Exception | str) -> str:
    """Return the message of an error in one line."""
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    else:
        text = str(error) or type(error).__name__
    return " ".join(text.split())


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


DEFAULT_MODEL = "tatoeba-en-de"
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
    """Return both files or None; raise ValueError if only one is given.

    Args:
        name: prefix of the options in the error, such as "test-".
        source: the file of one option.
        target: the file of the other.
    """
    if (source is None) != (target is None):
        raise ValueError(f"--{name}source-file and --{name}target-file must be given together")
    return None if source is None or target is None else (source, target)


def require_free(folder: Path) -> None:
    """Raise FileExistsError unless ``folder`` is absent or empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(f"{folder} exists; choose another folder")
