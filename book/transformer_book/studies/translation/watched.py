"""Translate the same sentences at fixed steps of a run of ``tatoeba-small`` with seed 2."""

import copy
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from transformer.data.tokenizer import Tokenizer
from transformer.inference.translator import Translator
from transformer.training.callbacks import Callback
from transformer.training.trainer import Trainer

RECORD = Path(__file__).parent / "watched.json"


class Watch(Callback):
    """Translate some sentences at some steps, with a copy of the model, into ``rows``."""

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
