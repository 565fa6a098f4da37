"""The curve: complete lines, none twice; the same numbers in a log and in trackers."""

import json
import logging
import os
import re
import signal

import pytest
from accelerate.tracking import GeneralTracker
from tiny_training import at_step, make_pairs, make_trainer

from transformer.training.curve import Curve, duration, read_curve


@pytest.mark.parametrize("rest", ["", '{"step": 5, "lo', '{"step": 5, "loss": 1.0}'])
def test_lines_after_the_checkpoint_are_dropped(tmp_path, rest):
    curve = Curve(tmp_path)
    for step in range(1, 5):
        curve.write(step, loss=1.0)
    with open(curve.path, "a") as file:
        file.write(rest)  # no end of line: the process was killed here
    assert len(read_curve(curve.path)) == 4 + rest.endswith("}")
    again = Curve(tmp_path, step=3)
    again.write(4, loss=9.0)
    lines = read_curve(again.path)
    assert [line["step"] for line in lines] == [1, 2, 3, 4] and lines[-1]["loss"] == 9.0


def test_a_damaged_line_affects_no_other(tmp_path):
    lines = [json.dumps(dict(step=i, loss=i / 2)).encode() for i in range(5)]
    path = tmp_path / "curve.jsonl"
    for damage in [
        b'{"step": 1, "lo\xff',
        b"[1]",
        b"7",
        b'{"loss": 1}',
        b'{"step": "x"}',
        b"[" * 10**5,
    ]:
        path.write_bytes(b"\n".join([*lines[:2], damage, *lines[3:]]) + b'\n{"step": 9')
        Curve(tmp_path, step=3).write(4, loss=2.0)
        assert [line["step"] for line in read_curve(path)] == [0, 1, 3, 4]


# ---------------------------------------------------------------------- logging and trackers


class Kept(GeneralTracker):
    """A tracker of the user's own."""

    name, requires_logging_directory = "kept", False

    def __init__(self):
        super().__init__()
        self.settings, self.lines, self.finished = [], [], 0

    @property
    def tracker(self):
        return self.lines

    def store_init_configuration(self, values):
        self.settings.append(values)

    def log(self, values, step=None, **_):
        self.lines.append(dict(step=step, **values))

    def finish(self):
        self.finished += 1


def test_a_tracker_gets_the_lines_of_the_curve(tmp_path):
    kept = Kept()
    run = dict(max_steps=4, validate_every=2, score=lambda model: dict(bleu=trainer.step))
    trainer = make_trainer(tmp_path, own=dict(trackers=[kept]), **run)
    at_step(trainer, 3, lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert not trainer.fit() and kept.finished == 1
    assert trainer.fit() and kept.finished == 2
    assert kept.lines == read_curve(tmp_path / "curve.jsonl") and len(kept.lines) == 6
    (settings,) = kept.settings  # once, although there were two sittings
    assert settings["batch_tokens"] == 40 and settings["model.d_model"] == 16
    assert all(isinstance(value, (bool, int, float, str)) for value in settings.values())


def test_lines_validations_and_checkpoints_are_logged(tmp_path, caplog):
    run = dict(max_steps=6, log_every=2, save_every=4, validation=make_pairs(9, 1))
    with caplog.at_level(logging.INFO, "transformer"):
        make_trainer(tmp_path, score=lambda model: dict(bleu=12.345), **run).fit()
    # A file may be reported some steps after its own.
    said = [record.getMessage() for record in caplog.records]
    said.sort(key=lambda text: (int(text.split()[1]), "saved" in text))
    assert all(record.name.startswith("transformer.training") for record in caplog.records)
    line = r"loss \d+\.\d{3}, learning rate \d\.\d\de-\d\d, [\d,]+ tokens/s, \d+ \w+ left"
    kinds = [
        (2, line), (4, line), (4, "saved checkpoints/step-00000004.safetensors"),
        (6, line), (6, r"perplexity \d+\.\d\d, bleu 12\.35"),
        (6, "saved checkpoints/step-00000006.safetensors"),
    ]  # fmt: skip
    assert len(said) == len(kinds)
    for text, (step, kind) in zip(said, kinds, strict=True):
        assert re.fullmatch(f"step {step} of 6: {kind}", text), text
    assert said[-3].endswith("tokens/s, 0 seconds left")


@pytest.mark.parametrize(
    "seconds, text",
    [(0.4, "0 seconds"), (1.0, "1 second"), (89.0, "89 seconds"), (90.0, "2 minutes"),
     (5399.0, "90 minutes"), (5400.0, "1.5 hours"), (3_610_000.0, "1,002.8 hours")],
)  # fmt: skip
def test_durations_have_their_unit(seconds, text):
    assert duration(seconds) == text
