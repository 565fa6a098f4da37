"""Verified, atomic downloads."""

import hashlib
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from tqdm.auto import tqdm

from transformer.saving.files import write_atomically

_CHUNK = 1 << 16


class DownloadError(FileNotFoundError):
    """A file is not on this machine, and no source provided it."""


def sha256(path: Path | str) -> str:
    """Return the SHA-256 of a file, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def download(
    urls: Sequence[str], path: Path | str, expected_sha256: str, timeout: float = 30.0
) -> None:
    """Download a file from the first source that has it, with a progress bar.

    The file appears at ``path`` only when it is complete and verified.

    Args:
        urls: sources of the same file, in the order to try them.
        path: the file to write; missing folders are made.
        expected_sha256: of the whole file, in hex.
        timeout: seconds without an answer after which a source is abandoned, above 0.

    Raises:
        DownloadError: if no source provided the right file; the one-line message has every reason.
        OSError: if the file cannot be written, for example because the disk is full.
    """
    path, reasons = Path(path), []

    def fetch(temporary: Path) -> None:
        for url in urls:
            reason = _fetch(url, temporary, expected_sha256, timeout)
            if reason is None:
                return
            reasons.append(f"{urlsplit(url).netloc} ({reason})")
        raise LookupError  # any OSError would be blamed on the disk

    try:
        write_atomically(path, fetch)
    except LookupError:
        raise DownloadError(f"cannot download {path.name}: {'; '.join(reasons)}") from None


def _fetch(url: str, path: Path, expected_sha256: str, timeout: float) -> str | None:
    """Write the content of ``url`` to ``path``; return what is wrong with it, or None."""
    with open(path, "wb") as file:
        try:
            response = urlopen(url, timeout=timeout)
        except (URLError, HTTPException, OSError) as error:
            return _one_line(error)
        with response:
            length = response.length
            digest, size = hashlib.sha256(), 0
            # disable=None: no bar where standard error is not a terminal.
            with tqdm(
                total=length, desc=url.rsplit("/", 1)[-1], unit="B", unit_scale=True,
                disable=None, leave=False,
            ) as bar:  # fmt: skip
                while True:
                    try:
                        chunk = response.read(_CHUNK)
                    except (HTTPException, OSError) as error:
                        return _one_line(error)
                    if not chunk:
                        break
                    file.write(chunk)  # an OSError here is not the source's fault
                    digest.update(chunk)
                    size += len(chunk)
                    bar.update(len(chunk))
    if length is not None and size < length:
        return f"truncated: {size} of {length} bytes"
    if digest.hexdigest() != expected_sha256:
        return f"wrong SHA-256: {digest.hexdigest()}, expected {expected_sha256}"
    return None


def _one_line(error: Exception) -> str:
    reason = getattr(error, "reason", None) if isinstance(error, URLError) else None
    code = getattr(error, "code", None)
    text = f"HTTP {code}" if code is not None else str(reason or error or type(error).__name__)
    return " ".join(text.split())
