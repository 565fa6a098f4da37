"""Make the scripts from which the live page loads the shipped model."""

from pathlib import Path
from typing import Annotated

import typer

from transformer.book.live import SHIPPED, make_payload

ROOT = Path(__file__).resolve().parents[2]


def live(
    folder: Annotated[Path, typer.Argument(help="where to write the scripts")] = ROOT
    / "_build/html/_static/live",
    model: Annotated[str, typer.Option(help="a shipped model, or a folder")] = SHIPPED,
) -> None:
    """Write the int8 weights, the tokenizer and the configuration as scripts for the live page.

    A build of the book does the same; the scripts are not part of the repository.
    """
    make_payload(model).write(folder)
    files = sorted(folder.glob("weights-*.js"))
    size = sum(file.stat().st_size for file in files)
    print(f"{len(files)} scripts, {size / 1e6:.1f} MB, in {folder}")
