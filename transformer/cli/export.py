"""``transformer export``."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, cast

import typer

from transformer.cli.frame import app, printed_log, require_free

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
        typer.Option(help="For ctranslate2: int8, float16, ...", show_default="float32"),
    ] = None,
) -> None:
    """Export a model for use with another program.

    ctranslate2: for serving; int8 is smaller and faster, at a small loss in quality. marian: for
    MarianMTModel of Hugging Face. onnx, torch: the encoder and the decoder step as graphs, checked
    against the model before the folder appears. ctranslate2 and onnx need the packages of
    transformer-book[export].

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
    require_free(output)
    with printed_log(sys.stderr):
        translator = Translator.from_pretrained(model)
    output.parent.mkdir(parents=True, exist_ok=True)
    # The folder appears only when it is complete.
    with TemporaryDirectory(prefix=f".{output.name}.", dir=output.parent) as temporary:
        folder, note = Path(temporary) / "export", ""
        if to == "ctranslate2":
            to_ctranslate2(translator, folder, quantization)
            note = f", {quantization or 'float32'}"
        elif to == "marian":
            to_marian(translator, folder)
        else:
            difference = to_graphs(translator, folder, cast(GraphKind, to))
            note = f", largest difference of a logit {difference:.0e}"
        if output.exists():  # it is empty, and may be the current folder
            for path in folder.iterdir():
                path.rename(output / path.name)
        else:
            folder.rename(output)
    size = sum(path.stat().st_size for path in output.iterdir()) / 1e6
    typer.echo(f"{output}: {to}{note}, {size:.1f} MB")
