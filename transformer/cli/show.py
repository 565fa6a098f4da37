"""``transformer corpora`` and ``transformer info``."""

import platform
import sys
from dataclasses import fields, is_dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer

from transformer import __version__
from transformer.cli.frame import DataDir, app, printed_log


@app.command()
def corpora(data_dir: DataDir = None) -> None:
    """List the corpora and show which are available offline.

    The others are downloaded, or read from --data-dir.

    \b
    Example:
      transformer corpora --data-dir ~/corpora
    """
    from transformer.data.corpora.catalogue import corpus_catalogue

    rows: list[tuple[str, ...]] = [("NAME", "LANGUAGES", "AT HAND", "FROM", "LICENCE")]
    for entry in corpus_catalogue(data_dir):
        at_hand = "yes" if entry.at_hand else "no"
        rows.append((entry.name, entry.languages, at_hand, entry.origin, entry.licence))
    _table(rows)


@app.command()
def info(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="A preset or a model.", show_default="this installation"
        ),
    ] = None,
) -> None:
    """Show versions and presets, or one preset or model.

    \b
    Examples:
      transformer info
      transformer info wmt14-base
      transformer info runs/smoke
    """
    from transformer.recipes.presets import PRESETS

    if name is None:
        _installation()
    elif name in PRESETS:
        from transformer.recipes.architectures import count_parameters

        preset = PRESETS[name]
        _size(count_parameters(preset.model))
        _fields(preset)
    else:
        from transformer.inference.translator import Translator

        try:
            with printed_log(sys.stderr):
                model = Translator.from_pretrained(name).model
        except FileNotFoundError as error:
            if "/" in name or Path(name).exists():  # a preset has no such name
                raise
            raise FileNotFoundError(f"{error}, nor a preset ({', '.join(PRESETS)})") from None
        _size(model.num_parameters())
        _fields(model.config)


def _installation() -> None:
    from transformer.inference.device import choose_device, device_label
    from transformer.recipes.presets import PRESETS
    from transformer.recipes.record import LIBRARIES
    from transformer.saving.locate import shipped_names

    _table(
        [
            ("transformer-book", __version__),
            ("python", platform.python_version()),
            *((library, metadata.version(library)) for library in LIBRARIES),
            ("device", device_label(choose_device())),
            ("models", ", ".join(shipped_names()) or "none"),
            ("presets", ", ".join(PRESETS)),
        ]
    )


def _size(count: int) -> None:
    typer.echo(f"parameters  {count:,} ({4 * count / 1e6:,.1f} MB as float32)")


def _fields(settings: Any) -> None:
    inner = [f.name for f in fields(settings) if is_dataclass(getattr(settings, f.name))]
    # Weights to start from are an option of their own.
    own = [f.name for f in fields(settings) if f.name not in (*inner, "init_from")]
    _table([(name, _as_set(getattr(settings, name))) for name in own])
    for name in inner:
        typer.echo(f"\n{name}:")
        _fields(getattr(settings, name))


def _as_set(value: Any) -> str:
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _table(rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        typer.echo("  ".join([*cells, row[-1]]))
