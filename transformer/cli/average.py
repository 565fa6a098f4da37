"""``transformer average``."""

from pathlib import Path
from typing import Annotated

import typer

from transformer.cli.frame import app, require_free


@app.command()
def average(
    source: Annotated[
        list[Path], typer.Argument(metavar="PATH", help="Folder of a run, or weight files.")
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
    last: Annotated[int, typer.Option(help="Number of checkpoints of a run.")] = 5,
    half: Annotated[bool, typer.Option("--half", help="Store as float16, half the size.")] = False,
) -> None:
    """Average checkpoints into one model.

    Takes the last checkpoints of a run, or the named files. The result is a folder for --model.

    \b
    Examples:
      transformer average runs/tatoeba-small --last 10
      transformer average runs/smoke/checkpoints/step-000000{20,40}.safetensors -o averaged
    """
    from transformer.recipes.averaging import average_model, last_checkpoints
    from transformer.training.checkpoint import save_pretrained

    checkpoints = source
    if len(source) == 1 and not source[0].is_file():
        checkpoints = last_checkpoints(source[0], last)
        output = output or source[0] / f"average-{last}"
    if output is None:
        raise ValueError("--output must name a folder if checkpoints are given as files")
    require_free(output)
    save_pretrained(*average_model(checkpoints), output, half)
    typer.echo(f"{output}: the mean of {', '.join(path.stem for path in checkpoints)}")
