"""The average of several checkpoints of a run, as a model.

Paper: section 6.1
"""

from collections.abc import Sequence
from pathlib import Path

from transformer.data.tokenizer import Tokenizer
from transformer.model.files import require_unchanged
from transformer.recipes.architectures import Model, build_model, config_of_class
from transformer.training.checkpoint import average_checkpoints, load_state


def last_checkpoints(run: Path | str, last: int = 5) -> list[Path]:
    """Return the newest ``last`` weight files in the folder of a run, oldest first.

    Raises:
        ValueError: if ``last`` is below 1 or the run holds fewer.
        FileNotFoundError: if there is no such folder.
    """
    run = Path(run)
    if last < 1:
        raise ValueError(f"last must be at least 1, got {last}")
    if not run.is_dir():
        raise FileNotFoundError(f"no folder {str(run)!r}")
    found = sorted((run / "checkpoints").glob("step-*.safetensors"))
    if len(found) < last:
        raise ValueError(f"{run} holds {len(found)} checkpoints, fewer than last={last}")
    return found[-last:]


def average_model(checkpoints: Sequence[Path | str]) -> tuple[Model, Tokenizer]:
    """Average weight files ``RUN/checkpoints/step-*.safetensors``; return model and tokenizer.

    The configuration and the tokenizer are read from ``RUN``.

    Raises:
        FileNotFoundError: if a file, or the run around it, is missing.
        ValueError: if a file is damaged, or the files are not of one model.

    Paper: section 6.1
    """
    weights = average_checkpoints(checkpoints)
    run = Path(checkpoints[0]).resolve().parent.parent
    if not (run / "state.pt").is_file():
        raise FileNotFoundError(f"{checkpoints[0]} lies in no training run: no {run / 'state.pt'}")
    mark, identity = "model.", load_state(run / "state.pt")["config"]
    values = {k.removeprefix(mark): v for k, v in identity.items() if k.startswith(mark)}
    # Runs of the first version do not name their class: there was only one.
    model = build_model(config_of_class(identity.get("architecture", "Transformer"), values))
    try:
        model.load_state_dict(weights)
    except RuntimeError:  # a line per weight
        raise ValueError(f"{checkpoints[0]} holds another model than the run in {run}") from None
    require_unchanged(run, "tokenizer.json")
    return model.eval(), Tokenizer.load(run / "tokenizer.json")
