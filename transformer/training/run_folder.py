"""Keep the folder of a run: one process at a time, and two states in case one is damaged."""

import errno
import gc
import math
import os
import shutil
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import torch
from filelock import FileLock, Timeout
from torch import Tensor

from transformer.data.model_tokenizers import TokenizerLike, save_tokenizers
from transformer.model.base import TranslationModel
from transformer.saving.files import cannot_write, write_atomically, write_manifest
from transformer.saving.hub import write_config
from transformer.saving.locate import CHECKPOINTS, CONFIG, STATE
from transformer.training.checkpoint import (
    load_state,
    remove_unfinished,
    save_state,
    save_weights,
)

LOCK, FORMER_STATE, DAMAGED_STATE = ".lock", "former-state.pt", "damaged-state.pt"
BEST = "checkpoints/best.safetensors"

#: The parts of every state, with their types.
STATE_PARTS = dict(config=dict, model=dict, optimizer=dict, random=list, progress=dict)

# What file systems without locks answer.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)

# The claims of this process, by file.
_CLAIMS: WeakValueDictionary[Path, FileLock] = WeakValueDictionary()


class FolderInUseError(OSError):
    """Another process, or another trainer of this one, is using the folder; the message says."""


def claim_folder(folder: Path) -> FileLock:
    """Claim a folder for one trainer of this process.

    The claim lasts until it is released, the last reference to it is dropped or the process ends,
    for whatever reason. On a file system without locks it keeps no other process out.

    Raises:
        FolderInUseError: if it is claimed.
        OSError: if the folder cannot be written.
    """
    file = folder.resolve() / LOCK
    if file in _CLAIMS:
        gc.collect()  # a trainer that an error ended may be garbage by now
    if file in _CLAIMS:
        raise FolderInUseError(
            f"another Trainer of this process has claimed {folder}; wait until its fit() ends, "
            "call its release(), or choose another folder"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        claim = FileLock(
            file, timeout=0, thread_local=False,
            fallback_to_soft=False,  # a file that a killed process leaves would claim the folder
        )  # fmt: skip
        claim.acquire()
    except Timeout:
        owner = ""
        with suppress(OSError):
            owner = file.read_text(encoding="utf-8", errors="replace")[:20].strip()
        process = f"process {owner}" if owner.isdecimal() else "another process"
        raise FolderInUseError(
            f"{process} is training in {folder}; wait until it ends, or choose another folder"
        ) from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise cannot_write(folder, error) from error
    mine = f"{os.getpid()}\n".encode()
    with suppress(OSError):  # the number is only for the message above
        if file.read_bytes() != mine:
            file.write_bytes(mine)
    _CLAIMS[file] = claim
    return claim


def prepare(
    folder: Path,
    model: TranslationModel,
    tokenizer: TokenizerLike | tuple[TokenizerLike, TokenizerLike] | None,
    step: int,
) -> None:
    """Write configuration and tokenizer beside the weights; remove what a killed process left.

    Checkpoints of steps later than ``step``, from which the run goes on, are removed.
    """
    for written in (folder, folder / "checkpoints"):
        remove_unfinished(written)
    for path in checkpoints(folder):
        if path.stem > f"step-{step:08d}":
            path.unlink()
    write_config(folder, model)
    names = [CONFIG]
    if tokenizer is not None:
        pair = tokenizer if isinstance(tokenizer, tuple) else (tokenizer, tokenizer)
        names += save_tokenizers(*pair, folder, model.longest)
    write_manifest(folder, *names)


def keep_weights(weights: dict[str, Tensor], path: Path, keep_last: int | None = None) -> None:
    """Write weights into the folder of a run, and remove checkpoints that are too old."""
    require_present(path.parents[1])
    save_weights(weights, path)
    if keep_last is not None:
        for old in checkpoints(path.parents[1])[:-keep_last]:
            old.unlink()


def checkpoints(folder: Path) -> list[Path]:
    """Return the weight files of the checkpoints in the folder of a run, oldest first."""
    return sorted(folder.glob(CHECKPOINTS))


def require_present(folder: Path) -> None:
    """Raise OSError if the folder of a run in progress has disappeared.

    A folder on a drive that is no longer mounted would be made again, on the disk below.
    """
    if not (folder / CONFIG).is_file():
        raise OSError(
            f"{folder} has disappeared during the run; mount it again, and the same command resumes"
        )


def keep_state(state: dict[str, Any], folder: Path) -> None:
    """Write the state of a run, and keep the previous one."""
    require_present(folder)
    present = folder / STATE
    if present.is_file():
        # A hard link, after the older state is removed: there are never three states on the disk.
        with suppress(OSError):
            write_atomically(folder / FORMER_STATE, lambda path: _second_name(present, path))
    save_state(state, present)


def _second_name(file: Path, name: Path) -> None:
    try:
        os.link(file, name)
    except OSError:  # not supported by every file system
        shutil.copyfile(file, name)


def load_newest_state(folder: Path) -> tuple[dict[str, Any], Path] | None:
    """Read the state from which a run resumes, with its file; None if there is no state.

    If the newest state is damaged, the previous one, with a warning.

    Raises:
        ValueError: if all states are damaged.
        OSError: if a state cannot be read, though it may be whole.
    """
    problems = []
    for file in (folder / STATE, folder / FORMER_STATE):
        if not file.is_file():
            continue
        try:
            state = load_state(file)
            parts = state if isinstance(state, dict) else {}
            if not all(isinstance(parts.get(name), kind) for name, kind in STATE_PARTS.items()):
                raise ValueError(f"{file} is not the state of a run")
        except ValueError as error:
            problems.append(str(error))
            continue
        if problems:
            notice = f"{problems[0]}; continuing from {file.name}, saved before it"
            warnings.warn(notice, stacklevel=3)
        return state, file
    if problems:
        advice = "its weights are in checkpoints/; to start over, choose another folder"
        raise ValueError(f"{'; '.join(problems)}; {advice}")
    return None


def warn_of_checkpoints(folder: Path) -> None:
    """Warn that a run without a state starts over and removes the checkpoints of its folder."""
    left = checkpoints(folder)
    if left:
        warnings.warn(
            f"{folder} holds no {STATE} to resume from: training starts at step 0 and will remove "
            f"the checkpoints there ({len(left)}); copy them first if you need them",
            stacklevel=4,
        )


def settings_of(folder: Path) -> dict[str, Any]:
    """Return the settings of the run that a folder holds, by field; none if it holds no state."""
    for file in (folder / STATE, folder / FORMER_STATE):
        with suppress(Exception):  # a damaged state is reported when the run resumes
            state = torch.load(file, map_location="cpu", weights_only=True, mmap=True)
            return dict(state["config"])
    return {}


def settle_on(file: Path) -> None:
    """Give the state from which a run resumes its usual name; keep a damaged one under another."""
    present = file.with_name(STATE)
    if file != present and present.is_file():
        os.replace(present, file.with_name(DAMAGED_STATE))
    os.replace(file, present)


def require_shared(found: list[str | None], folder: Path) -> None:
    """Raise ValueError unless all processes read a state of the same name in the folder."""
    for rank, name in enumerate(found):
        if name != found[0]:
            raise ValueError(
                f"process 0 sees {found[0] or 'no state'} in {folder}, process {rank} sees "
                f"{name or 'none'}; all machines of a run need one shared folder"
            )


def require_same(mine: dict[str, Any], theirs: dict[str, Any], folder: Path) -> None:
    """Raise ValueError unless a run is the one that a folder holds; the message names differences.

    A step takes ``accumulate`` batches in each of ``processes``. Both may change, their product
    may not. What an older version did not store counts as equal.
    """
    step = ("accumulate", "processes")
    batches = [math.prod(run.get(name, 1) for name in step) for run in (theirs, mine)]
    free = step if batches[0] == batches[1] else ()
    differ = [n for n in mine if n not in free and mine[n] != theirs.get(n, mine[n])]
    if differ:
        changes = ", ".join(f"{k}: {theirs[k]!r} there, {mine[k]!r} here" for k in differ)
        advice = ""
        if "processes" in differ:
            each, rest = divmod(batches[0], mine["processes"])
            advice = f"; a step takes {batches[0]} batches, which " + (
                f"{mine['processes']} processes cannot share equally"
                if rest
                else f"needs accumulate={each} in {mine['processes']} processes"
            )
        raise ValueError(f"{folder} holds a run of another configuration ({changes}){advice}")
