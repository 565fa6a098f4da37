"""The curve of a run: one JSON object a line, and TensorBoard on request.

Paper: not in the paper
"""

import json
from pathlib import Path

from transformer.training.checkpoint import write_atomically


class Curve:
    """Writes numbers as they come; a reader can follow the file while the run goes on.

    Args:
        folder: holds ``curve.jsonl``.
        tensorboard: also write event files into ``folder/tensorboard``.

    Raises:
        ModuleNotFoundError: if TensorBoard is asked for and not installed.

    Paper: not in the paper
    """

    def __init__(self, folder: Path, tensorboard: bool = False):
        self.path = Path(folder) / "curve.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.board = None
        if tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            self.board = SummaryWriter(str(self.path.parent / "tensorboard"))

    def write(self, step: int, **numbers: float) -> None:
        """Append one line.

        Paper: not in the paper
        """
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(dict(step=step, **numbers)) + "\n")
        if self.board:
            for name, value in numbers.items():
                self.board.add_scalar(name, value, step)

    def rewind(self, step: int) -> None:
        """Forget what came after ``step``: a resumed run writes those lines again.

        Paper: not in the paper
        """
        lines = [line for line in self.lines() if line["step"] <= step]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        write_atomically(self.path, lambda p: p.write_text(text, encoding="utf-8"))

    def lines(self) -> list[dict[str, float]]:
        """Read the curve; a last line that a killed run left unfinished is ignored.

        Paper: not in the paper
        """
        return read_curve(self.path)


def read_curve(path: Path | str) -> list[dict[str, float]]:
    """Read a ``curve.jsonl``; a last line that a killed run left unfinished is ignored.

    Paper: not in the paper
    """
    if not Path(path).exists():
        return []
    lines = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return lines
