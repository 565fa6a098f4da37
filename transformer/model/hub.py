"""Saving to and loading from a folder or the Hugging Face Hub, without pickles."""

import math
import os
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import torch
from huggingface_hub import PyTorchModelHubMixin, hf_hub_download
from huggingface_hub.errors import EntryNotFoundError
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import nn

from transformer.model.files import (
    CHECKSUM,
    MANIFEST,
    checksum,
    read_weight_file,
    require_unchanged,
    stored_shapes,
    write_atomically,
    write_manifest,
)

Model = TypeVar("Model", bound="HubModel")
CONFIG, WEIGHTS = "config.json", "model.safetensors"

# Limit of computed buffers, such as tables of positions: the weight file does not bound them.
_MOST_BUFFER_BYTES = 1 << 30

_FEW_NUMBERS = 1 << 20  # that fit any machine


class HubModel(
    PyTorchModelHubMixin,
    library_name="transformer-book",
    repo_url="https://github.com/transformer-book/transformer-book",
    tags=["translation"],
):
    """Gives a model ``save_pretrained``, ``from_pretrained`` and ``push_to_hub``.

    They come from the Hub's mixin: weights as safetensors, configuration as JSON. Unlike the
    mixin, loading raises on missing, unexpected or damaged weights, never unpickles, and refuses
    a configuration that is damaged or larger than the weights before it allocates memory.
    """

    # The mixin's own has a longer name for the first argument, and names the options.
    @classmethod
    def from_pretrained(  # type: ignore[override]
        cls: type[Model], name_or_path: str | Path, **options: Any
    ) -> Model:
        """Load a model from a folder, or from the Hub by its id "owner/name".

        Args:
            name_or_path: the folder or id.
            options: of the Hub's ``from_pretrained``, such as ``revision``.

        Raises:
            FileNotFoundError: if there is no such model.
            ValueError: if a file is damaged, or the weights do not fit the configuration.
        """
        if os.path.isdir(name_or_path):
            require_unchanged(name_or_path, CONFIG, WEIGHTS)
        try:
            return super().from_pretrained(name_or_path, **options)
        except (ValueError, OSError):
            raise
        except Exception as error:  # the mixin fails in many ways on a strange config.json
            reason = " ".join(str(error).split())[:300]
            raise ValueError(
                f"config.json of {str(name_or_path)!r} is not valid: {reason}"
            ) from None

    @classmethod
    def _from_pretrained(
        cls: type[Model],
        *,
        model_id: str,
        config: Any = None,
        map_location: str = "cpu",
        strict: bool = True,
        **options: Any,
    ) -> Model:
        # The mixin's default would accept missing and unknown weights, and open a pickle.
        files = _Files(model_id, options)
        try:
            require_unchanged(files.folder(), CONFIG, WEIGHTS)
            _require_types(config)
            if strict:
                _require_fitting(cls, config, files.path(WEIGHTS))
            model = cls(config)
            assert isinstance(model, nn.Module)
            model.load_state_dict(read_weight_file(files.path(WEIGHTS)), strict=strict)
            return model.to(map_location).eval()
        except (RuntimeError, TypeError, KeyError, OverflowError, SafetensorError) as error:
            reason = " ".join(str(error).split())[:300]
            raise ValueError(
                f"the weights in {model_id!r} do not fit its configuration: {reason}"
            ) from None

    # The mixin's own names the options. It writes the configuration last.
    def save_pretrained(self, save_directory: str | Path, **options: Any) -> str | None:
        """Write configuration, weights, their checksums and a model card to a folder.

        Args:
            save_directory: made if it does not exist; files in it are replaced, except a card.
            options: of the Hub's ``save_pretrained``, such as ``push_to_hub``.

        Returns:
            Where it is on the Hub, if it was sent there.

        Raises:
            OSError: if a file cannot be written.
        """
        address = super().save_pretrained(save_directory, **options)
        write_manifest(save_directory, CONFIG, WEIGHTS)
        return address

    def _save_pretrained(self, save_directory: Path) -> None:
        assert isinstance(self, nn.Module)  # with which it is mixed
        weights = {name: tensor.contiguous() for name, tensor in self.state_dict().items()}
        metadata = {CHECKSUM: checksum(weights)}
        path = Path(save_directory) / WEIGHTS
        write_atomically(path, lambda p: save_file(weights, p, metadata=metadata))


class _Files:
    """The files of a saved model: those of a folder, or downloads from the Hub."""

    def __init__(self, model_id: str, options: dict[str, Any]):
        self.model_id = model_id
        names = ("revision", "cache_dir", "force_download", "local_files_only", "token")
        self.options: dict[str, Any] = {name: options[name] for name in names if name in options}

    def path(self, name: str) -> Path:
        if os.path.isdir(self.model_id):
            return Path(self.model_id) / name
        return Path(hf_hub_download(repo_id=self.model_id, filename=name, **self.options))

    def folder(self) -> Path:
        try:
            folder = self.path(WEIGHTS).parent
        except EntryNotFoundError:
            raise ValueError(
                f"no {WEIGHTS} found in {self.model_id!r}; weights in a pickle are not read"
            ) from None
        with suppress(EntryNotFoundError):
            self.path(MANIFEST)  # downloads it beside the others
        return folder


def _require_types(config: Any) -> None:
    """Raise ValueError if a field of a configuration from a file is not of its type."""
    if not is_dataclass(config):
        raise ValueError(f"config.json must hold a model's configuration, got {config!r:.60}")
    hints = get_type_hints(type(config))
    for field in fields(config):
        value, hint = getattr(config, field.name), hints[field.name]
        kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        if not any(_is_of(value, kind) for kind in kinds):
            raise ValueError(f"{field.name} must be of type {field.type}, got {value!r:.60}")


def _is_of(value: Any, kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if kind is float:
        return type(value) in (int, float) and math.isfinite(value)
    return value is None if kind is NoneType else type(value) is kind


def _require_fitting(cls: type, config: Any, weights: Path) -> None:
    """Raise RuntimeError if the model would be larger than its weights, without making it."""
    if not weights.is_file():
        raise FileNotFoundError(f"no weights at {weights}")
    shapes = stored_shapes(weights)
    stored = sum(map(math.prod, shapes.values()))
    for name in (field.name for field in fields(config)):
        value = getattr(config, name)
        most = len(shapes) if name.endswith("layers") else stored
        if type(value) is int and name != "max_length" and value > most:
            raise RuntimeError(f"{name} is {value}, larger than the weight file allows")
    with torch.device("meta"):  # shapes without memory
        model = cls(config)
    needed = sum(tensor.numel() for tensor in model.state_dict().values())
    # A small misfit is left to the loading, which names the weights that do not fit.
    if needed > 2 * stored + _FEW_NUMBERS:
        raise RuntimeError(f"{needed:,} numbers are needed, the file holds {stored:,}")
    tables = sum(buffer.numel() * buffer.element_size() for buffer in model.buffers())
    if tables > _MOST_BUFFER_BYTES:
        raise RuntimeError(f"max_length {config.max_length} takes {tables:,} bytes for positions")
