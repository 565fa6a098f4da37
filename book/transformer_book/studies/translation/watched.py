"""Translate the same sentences at fixed steps of a training run, and record the translations.

    python -m transformer_book.studies.translation.watched  about ninety minutes on one core

Ctrl-C stops it, and the same command continues.
"""

import copy
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from transformer.data.tokenizer import Tokenizer
from transformer.inference.translator import Translator
from transformer.recipes.presets import get_preset
from transformer.recipes.record import read_record
from transformer.recipes.translation import TranslationRun
from transformer.training.callbacks import Callback
from transformer.training.trainer import Trainer
from transformer_book.studies.recording import Recording, parser
from transformer_book.studies.translation.record import record, run_name

#: The preset of the shipped model's size, with a seed of its own.
PRESET = get_preset("tatoeba-small").with_changes(seed=2)

#: Translated greedily at each of these steps.
SENTENCES = (
    "The animal didn't cross the street because it was too tired.",
    "Where is the nearest station?",
    "She gave her brother the book that she had just read.",
    "If I had known that, I would have stayed at home.",
)
STEPS = (0, 50, 100, 200, 300, 500, 750, *range(1000, PRESET.training.max_steps + 1, 250))

RECORD = Path(__file__).parent / "watched.json"


class Watch(Callback):
    """Translate some sentences at some steps, with a copy of the model.

    ``rows`` has one entry per step: "step", "tokens" (target tokens seen so far; the record is of
    earlier code, which counted those up to the last line of the curve), and "translations".
    """

    def __init__(self, sentences: Sequence[str], steps: Collection[int]):
        self.sentences, self.steps = sentences, steps
        self.rows: list[dict[str, Any]] = []

    def on_start(self, trainer: Trainer) -> None:
        if trainer.step == 0:
            self.on_step(trainer)

    def on_step(self, trainer: Trainer) -> None:
        if trainer.step not in self.steps or not trainer.accelerator.is_main_process:
            return
        assert isinstance(trainer.tokenizer, Tokenizer)  # a TranslationRun has a joint one
        translator = Translator(copy.deepcopy(trainer.model), trainer.tokenizer)
        found = translator.translate(self.sentences, beam_size=1)
        row = dict(step=trainer.step, tokens=trainer.tokens, translations=found)
        self.rows.append(row)
        print(f"step {trainer.step:,}: {found[0]}", flush=True)

    def state_dict(self) -> dict[str, Any]:
        return dict(rows=self.rows)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rows = state["rows"]


def main() -> None:
    """Train the model, or go on with it, and write both records."""
    options = parser(__doc__, RECORD)
    options.add_argument("--runs", type=Path, default=Path("runs"), help="folder of the run")
    chosen = options.parse_args()
    watch = Watch(SENTENCES, STEPS)
    if not record(PRESET, chosen.runs, callbacks=[watch]):
        return
    folder = chosen.runs / run_name(PRESET)
    if not watch.rows:  # it had ended before; what it wrote comes with the state of the run
        TranslationRun(PRESET, folder, callbacks=[watch])
    averaged = Translator.from_pretrained(folder / "model").translate(SENTENCES, beam_size=1)
    recording = Recording(
        chosen.output,
        "transformer_book.studies.translation.watched",
        keep=False,
        run=run_name(PRESET),
        environment=read_record(folder / "run.json")["environment"],
        sentences=SENTENCES,
        rows=watch.rows,
        averaged=averaged,
    )
    recording.save(f"{len(watch.rows)} steps")


if __name__ == "__main__":
    main()
