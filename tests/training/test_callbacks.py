"""Callbacks: when they are called, that their state survives, and early stopping."""

import math
import os
import signal
from pathlib import Path

import pytest
import torch
from tiny_training import assert_equal, at_step, make_model, make_pairs, make_trainer, weights_of

from transformer.training.callbacks import Callback, EarlyStopping
from transformer.training.checkpoint import load_state, load_weights

pytestmark = pytest.mark.usefixtures("unchecked")
VALIDATION = make_pairs(10, seed=1)


class Diary(Callback):
    """Write down what happens, draw random numbers, and average the weights."""

    def __init__(self):
        self.events, self.average, self.sittings = [], {}, []

    def on_start(self, trainer):
        self.sittings.append(trainer.step)

    def on_step(self, trainer):
        self.events.append(("step", trainer.step, torch.rand(()).item()))
        for name, weight in trainer.model.state_dict().items():
            mean = self.average.setdefault(name, weight.clone())
            self.average[name] = mean.lerp(weight, 0.1)

    def on_log(self, trainer, numbers):
        assert set(numbers) == {"loss", "learning_rate", "tokens_per_second"}
        self.events.append(("log", trainer.step, numbers["loss"]))

    def on_validation(self, trainer, numbers):
        self.events.append(("validation", trainer.step, numbers["perplexity"]))

    def on_checkpoint(self, trainer, path):
        load_weights(path)
        self.events.append(("checkpoint", trainer.step, path.name))

    def on_end(self, trainer):
        self.sittings.append(trainer.step)

    def state_dict(self):
        return dict(events=self.events, average=self.average)

    def load_state_dict(self, state):
        self.events, self.average = state["events"], state["average"]


def diary_of(folder, *stops, **changes):
    """Run to the end, interrupted at some steps; return the trainer and the last diary."""
    for stop in (*stops, None):
        diary = Diary()
        own = dict(callbacks=[EarlyStopping(patience=99), diary, Diary()])
        trainer = make_trainer(folder, make_model(), validation=VALIDATION, own=own, **changes)
        if stop:
            at_step(trainer, stop, lambda: os.kill(os.getpid(), signal.SIGTERM))
        assert trainer.fit() is not bool(stop)
    return trainer, diary


def test_every_event_is_reported_once_and_in_order(tmp_path):
    _, diary = diary_of(tmp_path, max_steps=5, log_every=2, validate_every=3, save_every=4)
    assert [event[:2] for event in diary.events] == [
        ("step", 1), ("step", 2), ("log", 2), ("step", 3), ("log", 3), ("validation", 3),
        ("step", 4), ("log", 4), ("checkpoint", 4),
        ("step", 5), ("log", 5), ("validation", 5), ("checkpoint", 5),
    ]  # fmt: skip
    assert diary.events[-1][2] == "step-00000005.safetensors"
    assert diary.sittings == [0, 5]


def test_states_survive_interruptions(tmp_path):
    straight, expected = diary_of(tmp_path / "straight", accumulate=2, log_every=4)
    stopped, diary = diary_of(tmp_path / "stopped", 6, 11, accumulate=2, log_every=4)
    assert diary.sittings == [11, 16]
    assert_equal(weights_of(straight.model), weights_of(stopped.model))
    assert_equal(expected.average, diary.average)
    # An interruption adds a line of the curve, and changes nothing else.
    without_logs = [[e for e in d.events if e[0] != "log"] for d in (expected, diary)]
    assert without_logs[0] == without_logs[1]


def test_a_state_that_could_not_be_loaded_is_refused_before_the_first_step(tmp_path):
    class Strange(Callback):
        def state_dict(self):
            return dict(history=[1.0, Path("a")])

    with pytest.raises(TypeError, match=r"history'\]\[1\] is a pathlib.*Path, which") as caught:
        make_trainer(tmp_path / "run", own=dict(callbacks=[Strange()])).fit()
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run/curve.jsonl").exists()
    with pytest.raises(TypeError, match=r"a sequence, such as .*, got EarlyStopping"):
        make_trainer(tmp_path, own=dict(callbacks=EarlyStopping()))
    for wrong in (EarlyStopping, print):
        with pytest.raises(TypeError, match="callbacks must be instances of Callback, got "):
            make_trainer(tmp_path, own=dict(callbacks=[wrong]))


def test_stop_ends_the_run_after_the_step_with_everything_saved(tmp_path):
    class Stop(Callback):
        def on_step(self, trainer):
            if trainer.step == 7:
                trainer.stop()

    trainer = make_trainer(tmp_path, own=dict(callbacks=[Stop()]), log_every=100)
    assert trainer.fit() is True and trainer.step == 7
    assert load_state(tmp_path / "state.pt")["progress"]["step"] == 7
    assert trainer.checkpoints()[-1].name == "step-00000007.safetensors"
    # Without the callback, the run goes on as if it had not been stopped.
    going_on, straight = make_trainer(tmp_path), make_trainer(tmp_path / "straight")
    assert going_on.fit() and straight.fit() and going_on.step == 16
    assert_equal(weights_of(going_on.model), weights_of(straight.model))


# ---------------------------------------------------------------------- early stopping


def run_with(folder, scores, stop=None, interrupt=None, **changes):
    """Train with given scores, one per validation, which comes every second step."""
    stop = stop or EarlyStopping("bleu", patience=2)
    trainer = make_trainer(
        folder,
        score=lambda model: dict(bleu=scores[trainer.step // 2 - 1]),
        own=dict(callbacks=[stop]),
        **dict(max_steps=12, validate_every=2, save_every=100) | changes,
    )
    if interrupt:
        at_step(trainer, interrupt, lambda: os.kill(os.getpid(), signal.SIGTERM))
    return trainer, trainer.fit()


@pytest.mark.parametrize(
    "stop, scores, last",
    [
        (EarlyStopping("bleu", 2), [1, 3, 2, 3, 4, 5], 8),  # equal is no improvement
        (EarlyStopping("bleu", 1, minimum_change=0.5), [1, 2, 2.4, 9, 9, 9], 6),
        (EarlyStopping("bleu", 2, mode="min"), [5, 4, 3, 3.5, 4, 1], 10),
        (EarlyStopping("bleu", 3), [1, math.nan, math.nan, 2, 3, 4], 12),
        (EarlyStopping("bleu", 2), [math.nan, 1, math.inf, 0, 9, 9], 8),
    ],
)
@pytest.mark.filterwarnings("ignore:bleu is")
def test_it_ends_after_validations_without_improvement(tmp_path, stop, scores, last):
    trainer, done = run_with(tmp_path, scores, stop)
    assert done is True and trainer.step == last
    assert trainer.checkpoints()[-1].name == f"step-{last:08d}.safetensors"


def test_a_run_that_ended_early_is_finished(tmp_path):
    scores = [3, 2, 1, 4, 5, 6]
    trainer, done = run_with(tmp_path, scores, interrupt=5)  # patience is counted across sittings
    assert done is False and trainer.step == 5
    for _ in range(2):
        trainer, done = run_with(tmp_path, scores)
        assert done is True and trainer.step == 6
    curve = (tmp_path / "curve.jsonl").read_text()
    assert run_with(tmp_path, scores)[1] and (tmp_path / "curve.jsonl").read_text() == curve
    trainer, done = run_with(tmp_path, scores, EarlyStopping("bleu", patience=3))
    assert done is True and trainer.step == 12


class Counter(Callback):
    """Count the steps of one name."""

    def __init__(self, name, unlike_others=True):
        self.state, self.unlike_others = dict(name=name, steps=0), unlike_others
        self.name = name

    def on_step(self, trainer):
        self.state["steps"] += 1

    def state_dict(self):
        return self.state

    def load_state_dict(self, state):
        self.state = state

    def owns(self, state):
        return not self.unlike_others or state["name"] == self.name


def train_with(folder, *callbacks, max_steps):
    score = iter(range(99)).__next__
    own = dict(callbacks=callbacks)
    trainer = make_trainer(
        folder, validation=VALIDATION, score=lambda _: dict(bleu=-score()), own=own,
        max_steps=max_steps, validate_every=2,
    )  # fmt: skip
    assert trainer.fit()


def test_states_find_their_callbacks_in_another_order(tmp_path, recwarn):
    def watched():
        return [EarlyStopping(patience=9), Counter("a"), EarlyStopping("bleu", 9), Counter("b")]

    train_with(tmp_path, *watched(), max_steps=4)
    saved = load_state(tmp_path / "state.pt")["callbacks"]
    perplexity, a, bleu, b = again = watched()
    train_with(tmp_path, Callback(), Callback(), *again[::-1], max_steps=6)
    assert saved["EarlyStopping 2"]["best"] == bleu.best == 0 and bleu.waited == 2
    assert saved["EarlyStopping 1"]["best"] >= perplexity.best > 1
    assert [(each.name, each.state["name"], each.state["steps"]) for each in (a, b)] == [
        ("a", "a", 6), ("b", "b", 6),
    ]  # fmt: skip
    assert not [each for each in recwarn if "callbacks" in str(each.message)]


def test_states_that_could_be_of_no_callback_or_of_several_are_named_in_one_line(tmp_path):
    pair = [Counter(name, unlike_others=False) for name in "ab"]
    train_with(tmp_path, *pair, EarlyStopping("bleu"), max_steps=2)
    again = [Counter(name, unlike_others=False) for name in "ab"]
    with pytest.warns(UserWarning) as caught:
        train_with(tmp_path, *again, max_steps=4)
    assert [str(each.message) for each in caught if "callbacks" in str(each.message)] == [
        "callbacks: 2 saved states of class Counter fit 2 callbacks here and are assigned in "
        "order; override owns() to tell them apart",
        "callbacks: 1 saved states of class EarlyStopping fit 0 callbacks here and are left out",
    ]
    assert [each.state["steps"] for each in again] == [4, 4]


def test_a_metric_that_is_not_measured_is_refused(tmp_path):
    for metric, needed in dict(perplexity="validation", bleu="score").items():
        own = dict(callbacks=[EarlyStopping(metric)])
        with pytest.raises(ValueError, match=f"EarlyStopping needs '{metric}'.*a {needed}"):
            make_trainer(tmp_path / metric, own=own).fit()
        assert not (tmp_path / metric / "curve.jsonl").exists()
    with pytest.raises(ValueError, match="watches 'blue', but validation measures bleu"):
        run_with(tmp_path, [1] * 6, EarlyStopping("blue"))
    for wrong in (dict(patience=0), dict(minimum_change=-1), dict(mode="lowest")):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
            EarlyStopping(**wrong)
