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
from safetensors.torch import save_model
from torch import nn

from transformer.model.manifest import MANIFEST, require_unchanged, write_manifest
from transformer.model.weight_file import CHECKSUM, checksum, read_weight_file, stored_shapes

Model = TypeVar("Model", bound="HubModel")
CONFIG, WEIGHTS = "config.json", "model.safetensors"

# Of buffers that are computed, such as a table of positions; nothing in a file vouches for them.
_MOST_BUFFER_BYTES = 1 << 30

_FEW_NUMBERS = 1 << 20  # that any machine has room for


class HubModel(
    PyTorchModelHubMixin,
    library_name="transformer-book",
    repo_url="https://github.com/transformer-book/transformer-book",
    tags=["translation"],
):
    """Gives a model ``save_pretrained``, ``from_pretrained`` and ``push_to_hub``.

    They come from the Hub's mixin: weights as safetensors, configuration as JSON. Its defaults are
    made strict here: weights that are missing, left over or damaged are an error, so is a pickle,
    and so is a configuration that is damaged, or of a larger model than the weights fill, before
    memory is asked for.
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
        except Exception as error:  # whatever a strange config.json does to the mixin
            reason = " ".join(str(error).split())[:300]
            raise ValueError(
                f"config.json of {str(name_or_path)!r} is not ours: {reason}"
            ) from None

    @classmethod
    def _from_pretrained(cls, *, strict: bool = True, **options: Any) -> Any:
        # The mixin's own default lets missing and unknown weights pass in silence.
        try:
            _require_unchanged_download(options)
            _require_types(options.get("config"))
            if strict:
                _require_fitting(cls, options.get("config"), _weight_file(options))
            # Older versions of huggingface_hub leave the model in training mode.
            return super()._from_pretrained(strict=strict, **options).eval()
        except (RuntimeError, TypeError, KeyError, OverflowError, SafetensorError) as error:
            reason = " ".join(str(error).split())[:300]
            raise ValueError(
                f"the weights in {options.get('model_id')!r} do not fit its configuration: {reason}"
            ) from None

    @classmethod
    def _load_as_safetensor(cls, model: Any, model_file: str, *options: Any) -> Any:
        read_weight_file(model_file)
        return super()._load_as_safetensor(model, model_file, *options)

    @classmethod
    def _load_as_pickle(cls, *_: Any) -> Any:
        # Where there are no safetensors, the mixin's own default opens a pickle.
        raise ValueError("no model.safetensors found; weights in a pickle are not read")

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
        weights = self.state_dict()
        # Of tensors that share memory one is stored, and which one is the library's choice.
        alone = len({tensor.data_ptr() for tensor in weights.values()}) == len(weights)
        metadata = {CHECKSUM: checksum(weights)} if alone else None
        save_model(self, str(Path(save_directory) / WEIGHTS), metadata)


def _weight_file(options: dict[str, Any]) -> str:
    if os.path.isdir(options["model_id"]):
        return os.path.join(options["model_id"], WEIGHTS)
    try:
        return _download(options, WEIGHTS)
    except EntryNotFoundError:
        return HubModel._load_as_pickle()


def _download(options: dict[str, Any], file: str) -> str:
    names = ("revision", "cache_dir", "force_download", "local_files_only", "token")
    where = {name: options[name] for name in names}
    return hf_hub_download(repo_id=options["model_id"], filename=file, **where)


def _require_unchanged_download(options: dict[str, Any]) -> None:
    if os.path.isdir(options["model_id"]):
        return  # looked at before
    weights = Path(_weight_file(options))
    with suppress(EntryNotFoundError):
        _download(options, MANIFEST)  # to the folder of the others
    require_unchanged(weights.parent, CONFIG, weights.name)


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


def _require_fitting(cls: type, config: Any, weights: str) -> None:
    """Raise RuntimeError if the model would be larger than its weights, without making it."""
    if not os.path.isfile(weights):
        raise FileNotFoundError(f"no weights at {weights}")
    shapes = stored_shapes(weights)
    stored = sum(map(math.prod, shapes.values()))
    for name in (field.name for field in fields(config)):
        value = getattr(config, name)
        most = len(shapes) if name.endswith("layers") else stored
        if type(value) is int and name != "max_length" and value > most:
            raise RuntimeError(f"{name} is {value}, more than they have place for")
    with torch.device("meta"):  # shapes without memory
        model = cls(config)
    needed = sum(tensor.numel() for tensor in model.state_dict().values())
    # A small misfit is left to the loading, which names the weights that do not fit.
    if needed > 2 * stored + _FEW_NUMBERS:
        raise RuntimeError(f"{needed:,} numbers are needed, the file holds {stored:,}")
    tables = sum(buffer.numel() * buffer.element_size() for buffer in model.buffers())
    if tables > _MOST_BUFFER_BYTES:
        raise RuntimeError(f"max_length {config.max_length} takes {tables:,} bytes for positions")
