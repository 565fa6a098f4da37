"""Files are written with the mode of any other file."""

import os

import pytest
import torch
from safetensors.torch import save_file

from transformer.saving.files import write_atomically, write_json


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask")
@pytest.mark.parametrize("umask", [0o022, 0o027, 0o000])
def test_modes_follow_the_umask(tmp_path, umask):
    """safetensors makes its files 0600, which a web server or a colleague could not read."""
    former = os.umask(umask)
    try:
        write_json(tmp_path / "a.json", {"a": 1})
        weights = {"a": torch.zeros(2)}
        write_atomically(tmp_path / "b.safetensors", lambda path: save_file(weights, path))
    finally:
        os.umask(former)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o666 & ~umask}


def test_an_error_that_is_not_about_the_file_stays_what_it_is(tmp_path):
    def fail(path):
        raise RuntimeError("CUDA error")

    with pytest.raises(RuntimeError, match="CUDA error"):
        write_atomically(tmp_path / "a", fail)
    assert not list(tmp_path.iterdir())


def test_two_threads_or_machines_may_write_one_file_at_once(tmp_path):
    path = tmp_path / "a"

    def write(temporary):
        temporary.write_text("last")
        write_json(path, "first")  # as another thread with the same process id

    write_atomically(path, write)
    assert path.read_text() == "last"
    assert list(tmp_path.iterdir()) == [path]
