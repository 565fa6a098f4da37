"""The curve: complete lines, none twice, and TensorBoard if installed."""

import importlib.util
import json

import pytest

from transformer.training.curve import Curve, read_curve


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
