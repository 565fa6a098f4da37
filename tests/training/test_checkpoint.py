"""Files are complete or absent, hold what was saved, and run no code."""

import os
from pathlib import Path

import pytest
import torch
from tiny_training import make_model

from transformer.training.checkpoint import (
    average_checkpoints,
    load_state,
    load_weights,
    save_state,
    save_weights,
)


def test_a_state_comes_back_as_it_was(tmp_path):
    state = dict(step=3, best=float("inf"), random=[[torch.get_rng_state()]], name=None)
    save_state(state, tmp_path / "state.pt")
    back = load_state(tmp_path / "state.pt")
    assert torch.equal(back.pop("random")[0][0], state.pop("random")[0][0])
    assert back == state


def test_the_mean_is_the_mean(tmp_path):
    files, models = [], [make_model(seed) for seed in range(3)]
    for seed, model in enumerate(models):
        files.append(tmp_path / f"{seed}.safetensors")
        save_weights(model.state_dict(), files[-1])
    mean = average_checkpoints(files)
    for name, weight in mean.items():
        parts = torch.stack([model.state_dict()[name].double() for model in models])
        torch.testing.assert_close(weight, parts.mean(0).float(), rtol=0, atol=0)
    alone = average_checkpoints(files[1:2])
    assert all(torch.equal(w, alone[name]) for name, w in load_weights(files[1]).items())


def test_a_mean_needs_files_of_one_model(tmp_path):
    with pytest.raises(ValueError, match="paths must name at least one checkpoint"):
        average_checkpoints([])
    save_weights({"a": torch.zeros(2)}, tmp_path / "1")
    for other in ({"a": torch.zeros(3)}, {"b": torch.zeros(2)}, {}):
        save_weights(other, tmp_path / "2")
        with pytest.raises(ValueError, match="2 holds another model than .*1"):
            average_checkpoints([tmp_path / "1", tmp_path / "2"])


class Malicious:
    def __init__(self, victim: Path):
        self.victim = victim

    def __reduce__(self):
        return os.mkdir, (str(self.victim),)


def test_no_code_in_a_state_is_run(tmp_path):
    victim, path = tmp_path / "victim", tmp_path / "state.pt"
    torch.save({"config": Malicious(victim)}, path)
    with pytest.raises(ValueError, match="state.pt is not a whole checkpoint"):
        load_state(path)
    assert not victim.exists()
    torch.load(path, weights_only=False)  # the file is harmful if it is trusted
    assert victim.exists()


@pytest.mark.parametrize("save", [save_weights, save_state])
def test_a_full_disk_leaves_the_old_file(tmp_path, limit_file_size, save):
    path = tmp_path / "file"
    save({"a": torch.ones(10)}, path)
    before = path.read_bytes()
    full = pytest.raises(OSError, match="cannot write .*file: .*File too large")
    with limit_file_size(20_000), full as caught:
        save({"a": torch.zeros(100_000)}, path)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["file"]
