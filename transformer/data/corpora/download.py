"""Downloads that are verified and never half-written."""

import hashlib
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from glob import escape
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from tqdm import tqdm

_CHUNK = 1 << 16
# Seconds after which nobody writes to an unfinished file any more, far above any timeout.
_ABANDONED = 3600


class DownloadError(FileNotFoundError):
    """A file is not on this machine and no source could give it."""


def sha256(path: Path | str) -> str:
    """SHA-256 of a file, in hex.

    Args:
        path: The file.

    Returns:
        64 hexadecimal digits.
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def download(
    urls: Sequence[str], path: Path | str, expected_sha256: str, timeout: float = 30.0
) -> None:
    """Download a file from the first source that has it, with a progress bar.

    The data go to a temporary name beside ``path``. They get their own name only when complete
    and verified, so a killed download or a full disk leaves nothing that looks like the file. What
    a killed one leaves is removed by the next, an hour later: it might be another's, still running.

    Args:
        urls: Sources of the same file, in the order to try them.
        path: Where the file shall be; missing folders are made.
        expected_sha256: SHA-256 of the whole file, in hex.
        timeout: Seconds without an answer after which a source is given up, above 0.

    Raises:
        DownloadError: If no source gave the right file; the one-line message has every reason.
        OSError: If the file cannot be written, such as for lack of space.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(path)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    reasons = []
    try:
        for url in urls:
            reason = _fetch(url, unfinished, expected_sha256, timeout)
            if reason is None:
                os.replace(unfinished, path)
                return
            reasons.append(f"{urlsplit(url).netloc} ({reason})")
    finally:
        unfinished.unlink(missing_ok=True)
    raise DownloadError(f"cannot download {path.name}: {'; '.join(reasons)}")


def _remove_abandoned(path: Path) -> None:
    for left in path.parent.glob(f"{escape(path.name)}.*.part"):
        with suppress(OSError):  # somebody else was quicker
            if time.time() - left.stat().st_mtime > _ABANDONED:
                left.unlink()


def _fetch(url: str, path: Path, expected_sha256: str, timeout: float) -> str | None:
    """Write what ``url`` gives to ``path``; return what is wrong with it, or None."""
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
                    file.write(chunk)  # an OSError from here is not the source's fault
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
