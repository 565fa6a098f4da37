"""The curve: whole lines, none twice, and TensorBoard when it is there."""

import builtins
import importlib.util

import pytest

from transformer.training.curve import Curve, read_curve


def test_lines_come_back(tmp_path):
    curve = Curve(tmp_path / "new")
    curve.write(1, loss=2.5, minutes=0.1)
    assert read_curve(curve.path) == [dict(step=1, loss=2.5, minutes=0.1)]  # while the run goes on
    curve.write(2, loss=2.0)
    assert [line["step"] for line in read_curve(tmp_path / "new/curve.jsonl")] == [1, 2]
    assert read_curve(tmp_path / "nothing.jsonl") == []


@pytest.mark.parametrize("rest", ["", '{"step": 5, "lo', '{"step": 5, "loss": 1.0}'])
def test_what_came_after_the_checkpoint_is_forgotten(tmp_path, rest):
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


def test_a_new_run_starts_with_an_empty_curve(tmp_path):
    (tmp_path / "curve.jsonl").write_text('{"step": 1}\n')
    Curve(tmp_path)
    assert read_curve(tmp_path / "curve.jsonl") == []


def test_without_tensorboard_the_message_says_what_to_install(tmp_path, monkeypatch):
    real = builtins.__import__

    def missing(name, *rest):
        if name.startswith(("tensorboard", "torch.utils.tensorboard")):
            raise ModuleNotFoundError("No module named 'tensorboard'")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'transformer-book\[tensorboard\]'"):
        Curve(tmp_path, tensorboard=True)


@pytest.mark.skipif(not importlib.util.find_spec("tensorboard"), reason="needs tensorboard")
def test_tensorboard_gets_the_same_numbers(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    curve = Curve(tmp_path, tensorboard=True)
    for step in (1, 2, 3):
        curve.write(step, loss=step / 2)
    Curve(tmp_path, tensorboard=True, step=2).write(3, loss=7.0)
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    points = [(event.step, event.value) for event in events.Scalars("loss")]
    assert sorted(set(points)) == [(1, 0.5), (2, 1.0), (3, 7.0)]
