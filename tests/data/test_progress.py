"""Progress bars appear in notebooks that a person runs, and nowhere else."""

import time
from types import SimpleNamespace

import IPython
import pytest

from transformer.data.progress import in_live_notebook, progress


@pytest.fixture
def notebook(monkeypatch):
    """Pretend that a notebook kernel runs this code; None for a terminal."""

    def pretend(content):
        kernel = SimpleNamespace(get_parent=lambda channel: {"content": content})
        shell = None if content is None else SimpleNamespace(kernel=kernel)
        monkeypatch.setattr(IPython, "get_ipython", lambda: shell)

    return pretend


@pytest.mark.parametrize("content", [None, {}, {"allow_stdin": False}])
def test_without_a_person_nothing_is_shown(notebook, content):
    notebook(content)
    items = range(3)
    assert not in_live_notebook() and progress(items) is items


def test_a_person_sees_a_bar_once_a_loop_is_slow(notebook, capsys):
    notebook({"allow_stdin": True})
    assert in_live_notebook() and list(progress("abc")) == list("abc")
    assert capsys.readouterr().err == ""
    assert [n for n in progress(range(3)) if time.sleep(0.6) is None] == [0, 1, 2]
    assert "2/3" in capsys.readouterr().err
