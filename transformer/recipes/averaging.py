"""The average of several checkpoints of a run, as a model.

Paper: section 6.1
"""

from collections.abc import Sequence
from pathlib import Path

from transformer.data.tokenizer import load_tokenizers
from transformer.inference.translator import Translator
from transformer.model.pretrained import locate
from transformer.recipes.architectures import build_model, config_of_class
from transformer.training.checkpoint import average_checkpoints, load_state
from transformer.training.run_folder import checkpoints


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
    found = checkpoints(run)
    if len(found) < last:
        raise ValueError(f"{run} holds {len(found)} checkpoints, fewer than last={last}")
    return found[-last:]


def average_model(paths: Sequence[Path | str]) -> Translator:
    """Average the weights of models; return the mean with its tokenizer.

    Args:
        paths: weight files, or other names that :func:`~transformer.model.pretrained.locate` finds.
            Configuration and tokenizer are those of the first.

    Raises:
        FileNotFoundError: if a file, or the run around it, is missing.
        ValueError: if a file is damaged, or the files are not of one model.

    Paper: section 6.1
    """
    places = [locate(path) for path in paths]
    weights = average_checkpoints([place.weights for place in places])
    state, kind = places[0].folder / "state.pt", "Transformer"
    if state.is_file():
        # Runs of the first version do not name their class: there was only one.
        kind = load_state(state)["config"].get("architecture", kind)
    model = build_model(config_of_class(kind, places[0].settings()))
    try:
        model.load_state_dict(weights)
    except RuntimeError:  # a line per weight
        there = f"the configuration in {places[0].folder}"
        raise ValueError(f"{paths[0]} holds another model than {there}") from None
    source, target = load_tokenizers(places[0].folder)
    return Translator(model.eval(), source, target_tokenizer=target)
