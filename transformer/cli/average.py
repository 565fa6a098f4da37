"""``transformer average``."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from transformer.cli.frame import app, printed_log, require_free


@app.command()
def average(
    source: Annotated[
        list[str],
        typer.Argument(metavar="MODEL", help="Folder of a run; or weight files or models."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            show_default="RUN/average-LAST",
            help="Folder to write.",
        ),
    ] = None,
    last: Annotated[
        int | None, typer.Option(help="Number of checkpoints of a run.", show_default="5")
    ] = None,
    half: Annotated[bool, typer.Option("--half", help="Store as float16, half the size.")] = False,
) -> None:
    """Average checkpoints into one model.

    Takes the last checkpoints of a run, or the models named. The result is a folder that --model
    accepts.

    \b
    Examples:
      transformer average runs/tatoeba-small --last 3
      transformer average runs/smoke/checkpoints/step-000000{40,60}.safetensors -o averaged
    """
    from transformer.recipes.averaging import average_model, last_checkpoints

    names: list[str] = source
    of_run = len(source) == 1 and (Path(source[0]) / "checkpoints").is_dir()
    if of_run:
        last = 5 if last is None else last
        names = [str(path) for path in last_checkpoints(source[0], last)]
        output = output or Path(source[0]) / f"average-{last}"
    if output is None and len(source) == 1 and not Path(source[0]).exists():
        raise FileNotFoundError(f"{source[0]} does not exist; MODEL must be the folder of a run")
    if output is None:
        raise ValueError(
            "--output must name a folder unless MODEL is the folder of one run; OUT is not an "
            "argument here, write -o OUT"
        )
    if last is not None and not of_run:
        raise ValueError("--last needs the folder of one run as MODEL")
    require_free(output)
    with printed_log(sys.stderr):
        mean = average_model(names)
    mean.save_pretrained(output, half)
    typer.echo(f"{output}: the mean of {', '.join(map(_shown, names))}")


def _shown(name: str) -> str:
    return Path(name).name.removesuffix(".safetensors")
