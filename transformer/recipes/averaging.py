"""The average of several checkpoints of a run, as a model."""

from collections.abc import Sequence
from pathlib import Path

from transformer.data.model_tokenizers import load_tokenizers
from transformer.data.tokenizer import TOKENIZER_CONFIG
from transformer.inference.translator import Translator
from transformer.recipes.presets import FREE_OF_WEIGHTS
from transformer.saving.files import file_checksum
from transformer.saving.hub import load_model
from transformer.saving.locate import TOKENIZER_FILES, Location, locate
from transformer.training.checkpoint import average_checkpoints
from transformer.training.run_folder import checkpoints

# Fields that change nothing in a translation: the weights fit, and dropout is off.
_WITHOUT_EFFECT = (*FREE_OF_WEIGHTS, "max_length")


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
        advice = f"; choose last={len(found)}" if found else ""
        raise ValueError(f"{run} holds {len(found)} checkpoints, fewer than last={last}{advice}")
    return found[-last:]


def average_model(paths: Sequence[Path | str]) -> Translator:
    """Average the weights of models; return the mean with its tokenizer.

    Args:
        paths: names that :func:`~transformer.saving.locate.locate` finds. All must have one
            configuration, except dropout, and one vocabulary.

    Raises:
        FileNotFoundError: if a file, or the run around it, is missing.
        ValueError: if a file is damaged, or two models differ in more than their weights.
    """
    places = [locate(path) for path in paths]
    weights = average_checkpoints([place.weights for place in places])
    model = load_model(places[0])
    for place in places[1:]:
        config = model.load_config(place)
        differ = [
            f"{name}: {getattr(config, name)!r} there, {value!r} here"
            for name, value in model.config.to_dict().items()
            if name not in _WITHOUT_EFFECT and getattr(config, name) != value
        ]
        if differ:
            raise ValueError(f"{place.name} is another model than {paths[0]} ({', '.join(differ)})")
        if _vocabulary(place) != _vocabulary(places[0]):
            raise ValueError(f"{place.name} has another vocabulary than {paths[0]}")
    model.load_state_dict(weights)
    source, target = load_tokenizers(places[0].folder)
    return Translator(model, source, target_tokenizer=target)


def _vocabulary(place: Location) -> dict[str, str]:
    files = [place.folder / name for name in TOKENIZER_FILES if name != TOKENIZER_CONFIG]
    return {file.name: file_checksum(file) for file in files if file.is_file()}
