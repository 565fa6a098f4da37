"""The last chapter makes the recipe that its parameters ask for."""

import json
import tempfile
from pathlib import Path

from transformer.recipes.cards import describe_card, get_card, on_card_in, this_card
from transformer.recipes.estimate import requirements
from transformer.recipes.overrides import parse_changes
from transformer.recipes.presets import get_preset

CHAPTER = Path(__file__).resolve().parents[2] / "notebooks" / "28_full_model.ipynb"
LIBRARY = (
    *(describe_card, get_card, on_card_in, this_card, get_preset, parse_changes, requirements),
    *(Path, tempfile),
)


def recipe_of(**parameters):
    """Run the cell that makes the recipe, with other parameters than the notebook's."""
    cells = json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    (usual,) = [source for source in sources if "settings: str" in source]
    (making,) = [source for source in sources if "rehearsal = preset" in source]
    names = {each.__name__: each for each in LIBRARY}
    exec(usual, names)
    assert parameters.keys() <= names.keys()
    names |= parameters
    exec(making, names)
    return names["recipe"]


def test_settings_are_kept_on_any_card(tmp_path):
    base = dict(preset="wmt14-base", card="t4", output=str(tmp_path))
    fitted = recipe_of(**base).training
    assert fitted.precision == "fp16"
    settings = "batch_tokens=5000,accumulate=5,precision=fp32,num_layers=2"
    made = recipe_of(**base, settings=settings, steps=7, seed=3)
    training = made.training
    assert (training.batch_tokens, training.accumulate, training.precision) == (5000, 5, "fp32")
    assert (training.max_steps, training.seed, made.model.num_layers) == (7, 3, 2)
    assert recipe_of(**base, seed=0).training.seed == 0
