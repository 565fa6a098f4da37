"""Find a trained model: in the package, in a folder, in a training run, or on the Hub.

One rule for everything that takes the name of a model: ``from_pretrained`` of models, tokenizers
and translators, and the command line. No pickle is ever loaded.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack

from transformer.saving.files import MANIFEST, read_json
from transformer.settings import unknown_name

SHIPPED_FOLDER = Path(__file__).resolve().parent.parent / "pretrained"
CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
STATE, RECORD, CURVE = "state.pt", "run.json", "curve.jsonl"  # of a run
CHECKPOINTS = "checkpoints/step-*.safetensors"  # in the order of their steps
#: The files of all kinds of our tokenizers.
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "source.spm",
    "target.spm",
    "vocab.json",
    "target_vocab.json",
)
#: The files of a trained model, which are uploaded to the Hub and downloaded from it.
FILES = (CONFIG, WEIGHTS, *TOKENIZER_FILES, MANIFEST, CARD)

# Files that identify a folder of another program, and what to do with it.
_EXPORTS = {
    "model.bin": "a CTranslate2 model; use it with transformer.interop.CTranslate2Translator",
    "encoder.onnx": "an ONNX model; use it with onnxruntime, as its README.md shows",
    "encoder.pt2": "a model exported by torch.export; use it as its README.md shows",
    "pytorch_model.bin": "weights in a pickle, which are not read; if it is a Marian model, load "
    "it with transformer.interop.from_marian",
}
_MARIAN = "a Marian model; load it with transformer.interop.from_marian"
_logger = logging.getLogger(__name__)


class HubOptions(TypedDict, total=False):
    """Options of a download, those of :func:`huggingface_hub.snapshot_download`."""

    revision: str | None  #: branch, tag or commit; the newest commit if left out
    token: str | bool | None  #: for a private repository; that of ``hf auth login`` if left out
    cache_dir: str | Path | None  #: where downloads are kept
    force_download: bool  #: whether to download again what is already in the cache
    local_files_only: bool  #: whether to use only the cache


@dataclass(frozen=True)
class Location:
    """Where the files of a trained model are."""

    name: str  #: or path that was asked for
    folder: Path  #: of the configuration, the tokenizer's files and usually their checksums
    weights: Path  #: a file in ``folder`` or in its ``checkpoints``

    def settings(self) -> dict[str, Any]:
        """Read the configuration, as names and values; raise ValueError if it is damaged."""
        found = read_json(self.folder / CONFIG)
        if not isinstance(found, dict):
            raise ValueError(f"{CONFIG} of {self.name!r} must hold an object, got {found!r:.60}")
        return found


def shipped_names() -> list[str]:
    """List the trained models that come with the package."""
    if not SHIPPED_FOLDER.is_dir():
        return []
    return sorted(path.name for path in SHIPPED_FOLDER.iterdir() if not _missing(path))


def locate(name_or_path: str | Path, **options: Unpack[HubOptions]) -> Location:
    """Find the files of a trained model.

    In this order, ``name_or_path`` is

    * a shipped name ("tatoeba-en-de"), which takes precedence over a folder of that name; for
      the folder, write "./tatoeba-en-de";
    * a folder of a trained model, with ``config.json`` and ``model.safetensors``;
    * the folder of a training run: its ``model`` if the run is finished, and otherwise its newest
      checkpoint, which is logged;
    * a weight file: of a model's folder, or a checkpoint of a run ("run/checkpoints/
      best.safetensors"), whose configuration and tokenizer are those of the run;
    * a Hub id ("owner/name"); downloads stay in the Hub's cache, and take :class:`HubOptions`. A
      ``Path`` is never a Hub id.

    Raises:
        FileNotFoundError: if there is no such model, if a file of it is missing, or if the Hub
            cannot be reached and the cache is empty.
        TypeError: if an option is unknown.
    """
    require_known(options)
    name, path = str(name_or_path), Path(name_or_path)
    if isinstance(name_or_path, str) and name in shipped_names():
        return _in_folder(name, SHIPPED_FOLDER / name)
    if path.is_file():
        return _of_file(name, path)
    if path.is_dir():
        return _in_folder(name, path)
    if isinstance(name_or_path, Path):
        raise FileNotFoundError(f"no file or folder {name!r}")
    return _in_folder(name, _download(name, options))


def require_known(options: Mapping[str, object], *others: str) -> None:
    """Raise TypeError unless all names are options of a download, or one of ``others``."""
    known = [*others, *HubOptions.__annotations__]
    for name in options:
        if name not in known:
            raise TypeError(unknown_name("option", name, known))


def _in_folder(name: str, folder: Path) -> Location:
    if not _missing(folder):
        kind = Location(name, folder, folder / WEIGHTS).settings().get("model_type")
        if kind == "marian":
            raise ValueError(f"{name!r} is {_MARIAN}({name!r})")
        return Location(name, folder, folder / WEIGHTS)
    checkpoints = sorted(folder.glob(CHECKPOINTS))
    if _is_result(folder / "model", checkpoints):
        return Location(name, folder / "model", folder / "model" / WEIGHTS)
    if _is_run(folder):
        if not checkpoints:
            raise FileNotFoundError(f"{name!r} is a training run that has no checkpoint yet")
        newest = checkpoints[-1]
        _logger.info(
            "%s has no finished model; using its newest checkpoint, %s", folder, newest.stem
        )
        return Location(name, folder, newest)
    for file, kind in _EXPORTS.items():
        if (folder / file).is_file():
            raise ValueError(f"{name!r} is {kind}")
    missing = ", ".join(_missing(folder))
    raise FileNotFoundError(f"{name!r} is not a trained model: {missing} missing")


def _of_file(name: str, path: Path) -> Location:
    folder, run = path.absolute().parent, path.absolute().parent.parent
    if path.suffix != ".safetensors":
        raise ValueError(f"{name!r} must be a folder or a weight file (.safetensors)")
    if (folder / CONFIG).is_file():
        return Location(name, folder, path)
    if folder.name == "checkpoints" and _is_run(run):
        return Location(name, run, path)
    raise FileNotFoundError(
        f"{name!r} is not in a training run and has no {CONFIG} beside it, so its configuration "
        "is missing"
    )


def _is_result(model: Path, checkpoints: list[Path]) -> bool:
    """Say whether a run's model is complete and not older than its checkpoints."""
    if _missing(model):
        return False
    if not checkpoints:
        return True
    try:
        steps = read_json(model.parent / RECORD)["steps"]  # written after the model
        newest = checkpoints[-1].stem <= f"step-{steps:08d}"
    except (OSError, LookupError, TypeError, ValueError):
        return False
    return newest and any((model / file).is_file() for file in TOKENIZER_FILES)


def _is_run(folder: Path) -> bool:
    if (folder / STATE).is_file():  # it may have no checkpoint yet
        return True
    return (folder / CONFIG).is_file() and (folder / "checkpoints").is_dir()


def _missing(folder: Path) -> list[str]:
    return [file for file in (CONFIG, WEIGHTS) if not (folder / file).is_file()]


def _download(name: str, options: HubOptions) -> Path:
    unknown = (
        f"no trained model {name!r}: neither shipped ({', '.join(shipped_names()) or 'none'}), "
        f"nor a file or folder, nor"
    )
    if name.startswith("Helsinki-NLP/"):
        raise FileNotFoundError(f"{unknown} of this package on the Hub: it is {_MARIAN}({name!r})")
    return download(name, FILES, unknown, **options)


def download(name: str, files: Iterable[str], unknown: str, **options: Unpack[HubOptions]) -> Path:
    """Download files of a model from the Hub into its cache, and return their folder.

    Raises:
        FileNotFoundError: if there is no such model, or it cannot be reached; the message begins
            with ``unknown``, such as "no model 'a/b': neither a folder nor".
    """
    if name.count("/") != 1:
        raise FileNotFoundError(f"{unknown} a Hub id like 'owner/name'")
    # Only a download pays for the import of the Hub's library.
    from huggingface_hub import errors, snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=list(files), **options))
    except errors.RevisionNotFoundError:
        raise FileNotFoundError(
            f"{name!r} on the Hugging Face Hub has no revision {options.get('revision')!r}"
        ) from None
    except errors.GatedRepoError:
        raise FileNotFoundError(
            f"{name!r} on the Hugging Face Hub is gated: accept its conditions there, and pass "
            f"token=... or call `hf auth login`"
        ) from None
    except (errors.HFValidationError, errors.RepositoryNotFoundError):
        raise FileNotFoundError(
            f"{unknown} on the Hugging Face Hub (a private one needs a token)"
        ) from None
    except OSError as error:  # errors of the Hub, the network and the disk
        raise FileNotFoundError(
            f"{unknown} within reach on the Hugging Face Hub ({type(error).__name__}). Without a "
            f"network, use a shipped model, or copy the model's files into a folder and pass its "
            f"path"
        ) from None
