"""The curve of a run: one JSON object per line, and TensorBoard on request."""

import json
from pathlib import Path

from transformer.model.files import cannot_write, write_atomically


class Curve:
    """Write numbers during a run, to a file that can be followed.

    Args:
        folder: holds ``curve.jsonl``.
        tensorboard: also write event files into ``folder/tensorboard``.
        step: the current step of the run. Lines beyond it, left by a killed run, are dropped
            because they will be written again.

    Raises:
        ModuleNotFoundError: if TensorBoard is requested and not installed.
    """

    def __init__(self, folder: Path, tensorboard: bool = False, step: int = 0):
        self.path = Path(folder) / "curve.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.board = None
        if tensorboard:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ModuleNotFoundError:
                raise ModuleNotFoundError(
                    "TensorBoard is not installed: pip install 'transformer-book[tensorboard]'"
                ) from None

            self.board = SummaryWriter(str(self.path.parent / "tensorboard"), purge_step=step + 1)
        lines = [line for line in read_curve(self.path) if line["step"] <= step]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        write_atomically(self.path, lambda p: p.write_text(text, encoding="utf-8"))

    def write(self, step: int, **numbers: int | float) -> None:
        """Append one line; OSError if it cannot be written."""
        try:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps(dict(step=step, **numbers)) + "\n")
        except OSError as error:
            raise cannot_write(self.path, error) from error
        if self.board:
            for name, value in numbers.items():
                self.board.add_scalar(name, value, step)
            self.board.flush()


def read_curve(path: Path | str) -> list[dict[str, int | float]]:
    """Read the lines of a ``curve.jsonl`` in order; damaged and unfinished ones are left out."""
    if not Path(path).exists():
        return []
    lines = []
    for line in Path(path).read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            numbers = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(numbers, dict) and type(numbers.get("step")) is int:
            lines.append(numbers)
    return lines
