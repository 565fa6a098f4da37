"""The bar is there for a reader, says how far it is, goes away, and is silent for tools."""

import os
import sys
import types

import nbformat
import pytest
from nbclient import NotebookClient

from transformer.training import progress as module
from transformer.training.progress import counting, progress


class Display:
    """What a notebook would show."""

    def __init__(self):
        self.shown = []

    def __call__(self, bundle, raw, display_id):
        assert raw and display_id
        self.shown.append(bundle)
        return self

    def update(self, bundle, raw):
        assert raw
        self.shown.append(bundle)


@pytest.fixture
def reader(monkeypatch):
    """A notebook with somebody before it; each look at the clock finds it a second later."""
    kernel = types.SimpleNamespace(_allow_stdin=True)
    shell = types.SimpleNamespace(kernel=kernel, execution_count=1)
    display, clock = Display(), iter(range(10_000))
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    monkeypatch.setattr("IPython.display.display", display)
    monkeypatch.setattr(module.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(module, "_bar", module._Bar())
    return types.SimpleNamespace(shell=shell, kernel=kernel, display=display)


def percents(reader):
    texts = [bundle["text/plain"] for bundle in reader.display.shown]
    return [int(text.split("%")[0]) if text else None for text in texts]


def test_nobody_there_nothing_shown():
    items = range(3)
    assert progress(items) is items


def test_a_tool_that_cannot_be_asked_sees_no_bar(reader):
    reader.kernel._allow_stdin = False
    items = [1, 2]
    assert progress(items) is items and reader.display.shown == []


def test_without_ipython_nothing_is_missed(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", None)
    items = [1]
    assert progress(items) is items


def test_it_shows_how_far_and_then_goes_away(reader):
    assert list(progress("abcd")) == list("abcd")
    assert percents(reader) == [25, 50, 75, 100, None]
    first = reader.display.shown[0]
    assert first["text/plain"] == "25%, about 3 s left"
    assert '<progress value="0.250" aria-label=' in first["text/html"]


def test_loops_inside_fill_their_part_of_the_outer_one(reader):
    for _ in progress(range(2)):
        for _ in progress(range(5)):
            pass
    assert percents(reader)[:5] == [10, 20, 30, 40, 50]
    assert percents(reader) == [*sorted(percents(reader)[:-1]), None]


def test_it_never_goes_back(reader):
    for _ in progress(range(2)):
        for _ in range(2):  # two loops, one after the other, inside one item
            for _ in progress(range(4)):
                pass
    shown = percents(reader)[:-1]
    assert shown == sorted(shown) and shown[-1] == 100


def test_what_is_no_loop_over_items_can_count(reader):
    with counting(2) as advance:
        advance()
        advance()
    assert percents(reader) == [50, 100, None]


def test_counting_is_silent_too(reader):
    with counting(1, hide=True) as advance:
        advance()
    reader.kernel._allow_stdin = False
    with counting(1) as advance:
        advance()
    assert reader.display.shown == []


def test_a_short_loop_shows_nothing(reader, monkeypatch):
    monkeypatch.setattr(module.time, "monotonic", lambda: 7.0)
    assert sum(progress(range(100))) == 4950 and reader.display.shown == []
    assert list(progress([])) == []


def test_it_is_not_redrawn_more_often_than_one_can_see(reader, monkeypatch):
    clock = iter(0.01 * n for n in range(100_000))
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    for _ in progress(range(1000)):
        pass
    assert len(reader.display.shown) < 50


def test_an_error_takes_the_bar_away(reader):
    with pytest.raises(RuntimeError):
        for _ in progress(range(4)):
            for n in progress(range(4)):
                if n == 2:
                    raise RuntimeError("stop")
    assert percents(reader)[-1] is None and module._bar.loops == []


def test_a_loop_that_was_left_does_not_disturb_the_next_cell(reader):
    kept = iter(progress(range(4)))
    next(kept)
    reader.shell.execution_count = 2
    assert list(progress("ab")) == ["a", "b"]
    assert percents(reader) == [50, 100, None]


def test_a_notebook_executed_by_a_tool_stores_what_it_printed(tmp_path):
    code = (
        "from transformer.training import progress\n"
        "progress.SHOW_AFTER = progress.SHOW_EVERY = 0\n"
        "for n in progress.progress(range(3)):\n    print(n)\n"
    )
    outputs = {}
    for asked in (False, True):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
        path = os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])
        client = NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}})
        with client.setup_kernel(env=os.environ | {"PYTHONPATH": path}):
            client.kc.allow_stdin = asked
            client.execute_cell(notebook.cells[0], 0)
        outputs[asked] = notebook.cells[0].outputs
    (only,) = outputs[False]
    assert only.output_type == "stream" and only.text == "0\n1\n2\n"
    shown = [one for one in outputs[True] if one.output_type == "display_data"]
    assert shown and shown[0].data["text/plain"] == "", "a reader's bar was there and has gone"
