"""The folder of a run: one process at a time, and two states, should one of them be damaged."""

import errno
import math
import os
import shutil
import warnings
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

from transformer.training.checkpoint import (
    cannot_write,
    load_state,
    save_state,
    write_atomically,
)

try:
    import fcntl
except ImportError:  # Windows has no such locks, and goes without
    fcntl = None  # type: ignore[assignment]  # a module, where there is one

LOCK, STATE, FORMER_STATE = ".lock", "state.pt", "former-state.pt"

#: What every state has.
STATE_PARTS = dict(config=dict, model=dict, optimizer=dict, random=list, progress=dict)


class FolderInUseError(OSError):
    """Another process works in the folder; the message names both."""


class FolderClaim:
    """Keeps a folder for this process until the claim is dropped or the process ends.

    However it ends: the lock belongs to the operating system, none is left behind by a kill.
    File systems that know no locks go without. Use :func:`claim_folder`.

    Args:
        folder: made if it does not exist.

    Raises:
        FolderInUseError: if another process has it.
        OSError: if the folder cannot be written.
    """

    def __init__(self, folder: Path):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.file = open(folder / LOCK, "a+", encoding="utf-8", errors="replace")  # noqa: SIM115
        except OSError as error:
            raise cannot_write(folder, error) from error
        if fcntl is None:
            return
        try:
            fcntl.lockf(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                return
            self.file.seek(0)
            owner = self.file.read(20).strip()
            self.file.close()
            process = f"process {owner}" if owner.isdecimal() else "another process"
            raise FolderInUseError(
                f"{process} is training in {folder}; wait until it ends, or choose another folder"
            ) from None
        with suppress(OSError):  # the number is for the message only
            self.file.seek(0)
            if self.file.read(20).strip() != str(os.getpid()):
                self.file.truncate(0)
                self.file.write(f"{os.getpid()}\n")
                self.file.flush()


_claims: "weakref.WeakValueDictionary[tuple[int, Path], FolderClaim]" = (
    weakref.WeakValueDictionary()
)


def claim_folder(folder: Path) -> FolderClaim:
    """Claim a folder for this process, which may do so more than once.

    Args:
        folder: of a run.

    Returns:
        The claim, to be held for as long as it is needed.

    Raises:
        FolderInUseError: if another process has it.
        OSError: if the folder cannot be written.
    """
    key = os.getpid(), folder.resolve()
    claim = _claims.get(key)
    if claim is None:
        claim = _claims[key] = FolderClaim(folder)
    return claim


def keep_state(state: dict[str, Any], folder: Path) -> None:
    """Write the state of a run, and keep the one before it.

    Args:
        state: see :func:`~transformer.training.checkpoint.save_state`.
        folder: of the run.

    Raises:
        OSError: if that is not possible; the states that were there stay.
    """
    present = folder / STATE
    if present.is_file():
        # A second name for the file. The older one goes first, so that never three take space.
        with suppress(OSError):
            write_atomically(folder / FORMER_STATE, lambda path: _second_name(present, path))
    save_state(state, present)


def _second_name(file: Path, name: Path) -> None:
    try:
        os.link(file, name)
    except OSError:  # not every file system can
        shutil.copyfile(file, name)


def load_newest_state(folder: Path) -> tuple[dict[str, Any], Path] | None:
    """Read the state that a run goes on from.

    Args:
        folder: of the run.

    Returns:
        The state and its file, the former one if the newest is damaged, of which a warning tells;
        None if there is none.

    Raises:
        ValueError: if there is none that is whole.
    """
    files = [file for file in (folder / STATE, folder / FORMER_STATE) if file.is_file()]
    problems = []
    for file in files:
        try:
            state = load_state(file)
            parts = state if isinstance(state, dict) else {}
            if not all(isinstance(parts.get(name), kind) for name, kind in STATE_PARTS.items()):
                raise ValueError(f"{file} is not the state of a run")
        except ValueError as error:
            problems.append(str(error))
            continue
        if problems:
            notice = f"{problems[0]}; going on from {file.name}, saved before it"
            warnings.warn(notice, stacklevel=3)
        return state, file
    if problems:
        advice = "its weights are in checkpoints/; to train anew, remove it"
        raise ValueError(f"{'; '.join(problems)}; {advice}")
    return None


def settle_on(file: Path) -> None:
    """Give the state that a run goes on from its usual name, over one that is damaged.

    Args:
        file: as :func:`load_newest_state` returned it.
    """
    os.replace(file, file.with_name(STATE))


def require_shared(found: list[str | None], folder: Path) -> None:
    """Raise unless all processes of a run see the same folder.

    Args:
        found: by process, the name of the state that it read there; None if it saw none.
        folder: of the run.

    Raises:
        ValueError: if they differ.
    """
    for rank, name in enumerate(found):
        if name != found[0]:
            raise ValueError(
                f"process 0 sees {found[0] or 'no state'} in {folder}, process {rank} sees "
                f"{name or 'none'}; all machines of a run need one shared folder"
            )


def require_same(mine: dict[str, Any], theirs: dict[str, Any], folder: Path) -> None:
    """Raise unless a run is the one that a folder holds.

    A step takes ``accumulate`` batches in each of ``processes``. Both may change, their product
    may not.

    Args:
        mine: what must be equal for a run to go on, by name.
        theirs: the same of the run in the folder. What an older version did not write down yet
            cannot be told to differ.
        folder: of the run.

    Raises:
        ValueError: if they differ; the message says in what.
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
                "so many processes cannot share equally"
                if rest
                else f"needs accumulate={each} in {mine['processes']} processes"
            )
        raise ValueError(f"{folder} holds a run of another configuration ({changes}){advice}")
