"""``transformer export``."""

import os
import shutil
from pathlib import Path
from typing import Annotated, cast

import typer

from transformer.cli.frame import app

FORMS = ("ctranslate2", "marian", "onnx", "torch")


@app.command()
def export(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A shipped model, a folder, or a Hub id.")
    ],
    output: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write.")],
    to: Annotated[str, typer.Option("--to", metavar="FORM", help=f"One of {', '.join(FORMS)}.")],
    quantization: Annotated[
        str | None,
        typer.Option(help="Of ctranslate2: int8, float16, ...", show_default="float32"),
    ] = None,
) -> None:
    """Write a model in the form of another program.

    ctranslate2: for serving; int8 is smaller and faster and not quite as good. marian: for
    MarianMTModel of Hugging Face. onnx, torch: encoder and decoder step as graphs without Python,
    compared with the model before the folder appears. ctranslate2 and onnx need the extra packages
    of transformer-book[export].

    \b
    Examples:
      transformer export tatoeba-en-de served --to ctranslate2 --quantization int8
      transformer export runs/smoke graphs --to onnx
    """
    from transformer.inference.translator import Translator
    from transformer.interop.ctranslate2 import to_ctranslate2
    from transformer.interop.graphs import GraphKind, to_graphs
    from transformer.interop.marian_export import to_marian

    if to not in FORMS:
        raise ValueError(f"--to must be one of {', '.join(FORMS)}, got {to!r}")
    if quantization is not None and to != "ctranslate2":
        raise ValueError(f"--quantization is for --to ctranslate2, not {to}")
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise FileExistsError(f"{output} exists; choose another folder")
    translator = Translator.from_pretrained(model)
    # Whatever goes wrong, there is a whole folder or none.
    unfinished = output.with_name(f"{output.name}.{os.getpid()}.tmp")
    said = ""
    try:
        if to == "ctranslate2":
            to_ctranslate2(translator, unfinished, quantization)
            said = f", {quantization or 'float32'}"
        elif to == "marian":
            to_marian(translator, unfinished)
        else:
            difference = to_graphs(translator, unfinished, cast(GraphKind, to))  # of two, see above
            said = f", no logit further than {difference:.0e} from the model's"
        if output.exists():
            output.rmdir()  # it is empty; Windows renames onto no folder at all
        unfinished.rename(output)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    size = sum(path.stat().st_size for path in output.iterdir()) / 1e6
    typer.echo(f"{output}: {to}{said}, {size:.1f} MB")
