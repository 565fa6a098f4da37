"""Find data files on this machine: the user's own, those of the package, the cache."""

import os
from pathlib import Path

#: Environment variable that names the user's data directory when no argument does.
DATA_DIR_VARIABLE = "TRANSFORMER_DATA_DIR"

EMBEDDED = Path(__file__).resolve().parent.parent / "embedded"


def find_file(name: str, folder: str, data_dir: Path | str | None = None) -> Path | None:
    """Search a file in the user's data directory, then in the package; None if in neither.

    In each, ``folder/name`` is tried before ``name``, and a name that ends in ``.gz`` also without
    that ending.

    Args:
        name: file name, such as ``train.en.gz``.
        folder: folder of the corpus, such as ``multi30k-task1``.
        data_dir: the user's data directory; None for the value of the environment variable
            ``TRANSFORMER_DATA_DIR``, if any.

    Raises:
        FileNotFoundError: if the data directory does not exist.
    """
    roots = [EMBEDDED]
    named = data_dir if data_dir is not None else os.environ.get(DATA_DIR_VARIABLE)
    if named:
        user_root = Path(named).expanduser()
        if not user_root.is_dir():
            setting = "data_dir" if data_dir is not None else DATA_DIR_VARIABLE
            raise FileNotFoundError(f"{setting} must be a directory, there is none at {user_root}")
        roots.insert(0, user_root)
    for root in roots:
        for path in (root / folder / name, root / name):
            for candidate in (path, path.with_name(name.removesuffix(".gz"))):
                if candidate.is_file():
                    return candidate
    return None


def require_file(name: str, folder: str, data_dir: Path | str | None = None) -> Path:
    """Call :func:`find_file`; if there is no such file, raise FileNotFoundError with advice."""
    path = find_file(name, folder, data_dir)
    if path is None:
        raise FileNotFoundError(f"cannot find {name}; {how_to_provide(folder)}")
    return path


def how_to_provide(folder: str) -> str:
    """Return advice for a missing file."""
    return f"put it into <dir>/{folder}/ and give <dir> as data_dir or {DATA_DIR_VARIABLE}"


def cache_directory() -> Path:
    """Return the folder for downloads: ``transformer-book`` in the user's cache directory."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "transformer-book"
