"""Find the folder of a trained model: shipped, local, or from the Hugging Face Hub.

Such a folder holds ``config.json``, ``model.safetensors`` and ``tokenizer.json``, and usually their
checksums. Nothing else is downloaded, and no pickle is ever loaded.
"""

from pathlib import Path

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

from transformer.model.files import MANIFEST

SHIPPED_FOLDER = Path(__file__).resolve().parent.parent / "pretrained"
FILES = ("config.json", "model.safetensors", "tokenizer.json")


def shipped_names() -> list[str]:
    """List the trained models that come with the package."""
    if not SHIPPED_FOLDER.is_dir():
        return []
    return sorted(folder.name for folder in SHIPPED_FOLDER.iterdir() if not missing_files(folder))


def missing_files(folder: Path) -> list[str]:
    """List the files of a trained model that a folder lacks."""
    return [name for name in FILES if not (folder / name).is_file()]


def locate_pretrained(name_or_path: str | Path) -> Path:
    """Find the folder of a trained model.

    The search goes through shipped names, existing folders and the Hub ("owner/name"), in this
    order; downloads stay in the Hub's cache. A shipped name takes precedence over a folder of that
    name; write "./tatoeba-en-de" for the folder. In the folder of a training run, the model is in
    the subfolder ``model``.

    Args:
        name_or_path: a name such as "tatoeba-en-de", a path, or a Hub id. A ``Path`` always means
            a folder.

    Returns:
        A folder that has all files of a trained model.

    Raises:
        FileNotFoundError: if there is no such name, folder or repository, if the folder lacks a
            file, or if the Hub cannot be reached and the cache is empty.
    """
    name, folder = str(name_or_path), Path(name_or_path)
    if isinstance(name_or_path, str) and name in shipped_names():
        return SHIPPED_FOLDER / name
    if not folder.is_dir():
        if isinstance(name_or_path, Path):
            raise FileNotFoundError(f"no folder {name!r}")
        folder = _download(name)
    if missing_files(folder) and not missing_files(folder / "model"):
        return folder / "model"
    if missing := missing_files(folder):
        raise FileNotFoundError(f"{name!r} is no trained model: {', '.join(missing)} missing")
    return folder


def _download(name: str) -> Path:
    unknown = (
        f"no trained model {name!r}: neither shipped ({', '.join(shipped_names()) or 'none'}), "
        f"nor a folder, nor"
    )
    if name.count("/") != 1:
        raise FileNotFoundError(f"{unknown} a Hub id like 'owner/name'")
    if name.startswith("Helsinki-NLP/"):
        raise FileNotFoundError(
            f"{unknown} a model of this package on the Hub: it is a Marian model; load it with "
            f"transformer.interop.from_marian({name!r})"
        )
    try:
        return Path(snapshot_download(name, allow_patterns=[*FILES, MANIFEST]))
    except (HFValidationError, RepositoryNotFoundError):
        raise FileNotFoundError(f"{unknown} on the Hugging Face Hub") from None
    except OSError as error:  # errors of the Hub, the network and the disk
        raise FileNotFoundError(
            f"{unknown} within reach on the Hugging Face Hub ({type(error).__name__}). Without a "
            f"network, use a shipped model, or copy the files {', '.join(FILES)} into a folder and "
            f"pass its path"
        ) from None
