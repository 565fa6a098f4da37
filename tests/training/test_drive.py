"""A run folder on a mounted drive, as in Colab: the machine is lost, or the drive disappears."""

import pytest
from test_killed import ROOT, reference, trainer_in  # noqa: F401 (a fixture)
from tiny_training import assert_equal, at_step, weights_of

from transformer.training.checkpoint import load_state
from transformer.training.run_folder import BEST, keep_state, keep_weights

pytestmark = pytest.mark.usefixtures("unchecked")


def assert_ends_like(trainer, expected):
    assert trainer.fit() is True
    assert_equal(weights_of(expected.model), weights_of(trainer.model))


def test_a_drive_that_disappears_ends_the_run_and_is_not_made_again(tmp_path, reference):  # noqa: F811
    folder, away = tmp_path / "drive", tmp_path / "away"
    trainer = trainer_in(folder)

    def disappear():
        list(trainer.writer.finished(wait_for_all=True))
        folder.rename(away)

    at_step(trainer, 8, disappear)
    with pytest.raises(OSError, match=f"cannot write {folder}.*: No such file"):
        trainer.fit()
    assert not folder.exists(), "a folder below the place of the drive would be lost"
    away.rename(folder)
    assert load_state(folder / "state.pt")["progress"]["step"] == 5
    assert_ends_like(trainer_in(folder), reference)


def test_nothing_is_written_where_a_folder_was(tmp_path):
    for write in (
        lambda: keep_state({}, tmp_path / "drive"),
        lambda: keep_weights({}, tmp_path / "drive" / BEST),
    ):
        with pytest.raises(OSError, match="drive has disappeared during the run; mount it again"):
            write()
    assert not list(tmp_path.iterdir())
