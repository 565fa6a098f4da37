"""``transformer evaluate``: scores of files and of corpora."""

import re

import pytest

from tests.cli.conftest import fails, run


def test_scores_come_with_signatures(trained, text, files):
    shown = run("evaluate", "-m", trained[0], *files, "--beam-size", 1).stdout.splitlines()
    assert shown[0] == f"{trained[0]} on {text[0]}: 64 pairs, beam 1, alpha 0.6 (gnmt)"
    assert re.fullmatch(r"BLEU \d+\.\d\d \(nrefs:1\|.*version:.*\)", shown[1])
    assert re.fullmatch(r"chrF2 \d+\.\d\d \(nrefs:1\|.*version:.*\)", shown[2])


@pytest.fixture
def newstests(text, tmp_path):
    """A folder with two test sets of a corpus."""
    for name in ("newstest2013", "newstest2014"):
        for path, side in zip(text, ("en", "fr"), strict=True):
            lines = path.read_text().splitlines(keepends=True)
            count = 5 if name == "newstest2013" else 7
            (tmp_path / f"{name}.en-fr.{side}").write_text("".join(lines[:count]))
    return tmp_path


def test_a_split_of_a_corpus_by_name(trained, newstests):
    options = "--corpus", "wmt-newstest-en-fr", "--data-dir", newstests, "--beam-size", 1
    assert ": 7 pairs" in run("evaluate", "-m", trained[0], *options).stdout
    shown = run("evaluate", "-m", trained[0], *options, "--split", "validation").stdout
    assert "wmt-newstest-en-fr validation: 5 pairs" in shown
    saying = "split must be one of validation, test, .* got 'train'"
    fails("evaluate", "-m", trained[0], *options, "--split", "train", saying=saying)


def test_moses_tokens_are_scored_as_they_are(trained, newstests):
    pytest.importorskip("sacremoses")
    options = "--corpus", "wmt-newstest-en-fr", "--data-dir", newstests, "--beam-size", 1
    checkpoint = trained[0] / "checkpoints/best.safetensors"
    shown = run("evaluate", "-m", checkpoint, *options, "--text", "moses-lowercase").stdout
    assert re.search(r"^BLEU .*\|tok:none\|", shown, re.M)
    fails("evaluate", "-m", checkpoint, *options, "--text", "moses", saying="text must be one of")


def test_bad_input(trained, files, tmp_path):
    both = "--corpus", "tatoeba-en-de"
    fails("evaluate", "-m", trained[0], *files, *both, saying="either --corpus or files")
    fails("evaluate", "-m", trained[0], *files[:2], saying="--target-file")
    moses = "--text", "moses-lowercase"
    fails("evaluate", "-m", trained[0], *files, *moses, saying="--text needs --corpus")
    for ignored in (("--split", "test"), ("--data-dir", tmp_path)):
        fails("evaluate", "-m", trained[0], *files, *ignored, saying="need --corpus, not files")
    fails("evaluate", "-m", trained[0], "--corpus", "tatoeba", saying="unknown corpus")
