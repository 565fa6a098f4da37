"""Token ids on disk: a text larger than the memory is encoded once, then memory-mapped.

A folder of the cache holds the ids of both sides, the end of each sentence, and a header. The
header is written last, so that a folder with a header is complete, even after a kill.
"""

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from transformer.data.batching import (
    ByLength,
    EncodedPairs,
    Sentences,
    encoded_chunks,
    ids_checksum,
)
from transformer.data.corpora.local import cache_directory
from transformer.data.parallel import StreamedSplit
from transformer.data.tokenizer import Tokenizer
from transformer.saving.files import write_atomically

_HEADER = "header.json"
_SIDES = ("source", "target")
_FORMAT = 1


def cached_pairs(
    tokenizer: Tokenizer, text: StreamedSplit, cache: Path | str | None = None
) -> EncodedPairs:
    """Encode a text once, and map its ids from disk in later calls.

    Memory stays constant: the text is read, encoded and written in chunks. Several processes may
    call this at once, even with a shared disk; one encodes while the others wait. An id takes 2
    bytes if the vocabulary has at most 65,536 tokens, otherwise 4.

    Args:
        tokenizer: the joint tokenizer.
        text: pairs of text, cached by their identity and the tokenizer.
        cache: folder of all cached texts; None for ``tokens`` in
            :func:`~transformer.data.corpora.local.cache_directory`.

    Raises:
        ValueError: if the text cannot be read.
        OSError: if the ids cannot be written.
    """
    content = f"{_FORMAT} {text.identity} {tokenizer.to_json()}"
    folder = _cache(cache) / sha256(content.encode()).hexdigest()[:32]
    found = _map(folder)
    if found is None:
        with _alone(folder):
            if (found := _map(folder)) is None:
                shutil.rmtree(folder, ignore_errors=True)  # damaged or unfinished
                try:
                    _write(tokenizer, text, folder)
                except BaseException:
                    shutil.rmtree(folder, ignore_errors=True)
                    raise
                found = _map(folder)
    assert found is not None  # it was just written
    found.__dict__["tokenizer"] = tokenizer.checksum  # not in the headers of earlier versions
    return found


def cached_tokenizer(
    text: StreamedSplit, vocab_size: int, cache: Path | str | None = None
) -> Tokenizer:
    """Train a tokenizer on both sides of a text once, and load it from disk in later calls."""
    content = f"{_FORMAT} {text.identity} {vocab_size}"
    file = _cache(cache) / f"{sha256(content.encode()).hexdigest()[:32]}.json"
    if not file.is_file():
        with _alone(file):
            if not file.is_file():
                Tokenizer.train(chain.from_iterable(text), vocab_size).save(file)
    return Tokenizer.load(file)


def _cache(named: Path | str | None) -> Path:
    return cache_directory() / "tokens" if named is None else Path(named)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep other processes from making the same file, and explain errors of the disk."""
    lock = path.with_name(f".{path.name}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(lock):  # released by a kill as well
            yield
    except OSError as error:
        # An error of the text stays as it is; one without an errno is explained already.
        if not _concerns(error, path, lock):
            raise
        reason = error.strerror or error
        advice = "make room, or name another folder in XDG_CACHE_HOME"
        raise OSError(f"cannot write {path}: {reason}; {advice}") from error


def _concerns(error: OSError, path: Path, lock: Path) -> bool:
    """Return whether an error is about writing ``path``, its lock or a folder above it."""
    if error.filename is None:  # while a file is read or written: only writing fills a disk
        return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    about = Path(os.fsdecode(error.filename))
    at = about in (path, lock, *path.parents) or path in about.parents
    return at and error.errno is not None


def _write(tokenizer: Tokenizer, text: StreamedSplit, folder: Path) -> None:
    folder.mkdir()
    dtype = np.dtype(np.uint16 if tokenizer.vocab_size <= 1 << 16 else np.int32)
    pairs, tokens = 0, [0, 0]
    with ExitStack() as stack:
        ids, offsets = (
            [stack.enter_context(open(folder / f"{side}.{kind}", "wb")) for side in _SIDES]
            for kind in ("ids", "offsets")
        )
        for file in offsets:
            file.write(np.zeros(1, np.int64).data)
        for chunk in encoded_chunks(tokenizer, text):
            pairs += len(chunk[0][1])
            for i, (found, ends) in enumerate(chunk):
                # Not ``tofile``, which does not report a full disk.
                ids[i].write(found.astype(dtype).data)
                offsets[i].write(ends.data)
                tokens[i] = int(ends[-1])
        for file in (*ids, *offsets):
            file.flush()
            os.fsync(file.fileno())
    checksum = 0
    for side in _SIDES:  # read, not mapped: mapped pages count as memory
        with open(folder / f"{side}.ids", "rb") as written:
            while len(block := np.fromfile(written, dtype, 1 << 20)):
                checksum = ids_checksum([block], checksum)
    header = dict(pairs=pairs, tokens=tokens, dtype=dtype.name, checksum=checksum)
    header |= dict(pad_id=tokenizer.pad_id, bos_id=tokenizer.bos_id)
    for name, array in _open(folder, header).by_length._asdict().items():
        with open(folder / f"{name}.by-length", "wb") as file:
            file.write(array.data)
            file.flush()
            os.fsync(file.fileno())
    write_atomically(folder / _HEADER, lambda p: p.write_text(json.dumps(header), encoding="utf-8"))


def _map(folder: Path) -> EncodedPairs | None:
    """Map the arrays of a folder; None if one is missing or incomplete."""
    try:
        header = json.loads((folder / _HEADER).read_text(encoding="utf-8"))
        found, pairs = _open(folder, header), header["pairs"]
        by_length = ByLength(
            *(
                _open_array(folder / f"{name}.by-length", dtype, pairs)
                for name, dtype in (("rows", np.int64), ("source", np.int32), ("target", np.int32))
            )
        )
    except (OSError, ValueError, KeyError):
        return None
    # Values of cached properties.
    found.__dict__.update(checksum=header["checksum"], by_length=by_length)
    return found


def _open(folder: Path, header: dict[str, Any]) -> EncodedPairs:
    source, target = (
        Sentences(
            _open_array(folder / f"{name}.ids", header["dtype"], tokens),
            _open_array(folder / f"{name}.offsets", np.int64, header["pairs"] + 1),
        )
        for name, tokens in zip(_SIDES, header["tokens"], strict=True)
    )
    return EncodedPairs(source, target, header["pad_id"], header["bos_id"])


def _open_array(path: Path, dtype: str | type, size: int) -> np.ndarray:
    mapped = np.memmap(path, dtype, "r")
    if len(mapped) != size:
        raise ValueError(f"{path} has {len(mapped)} entries, not {size}")
    return np.asarray(mapped)
