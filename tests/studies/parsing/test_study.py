"""The record agrees with the stored outputs and with the shipped treebank."""

import tarfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from transformer.data.corpora.local import EMBEDDED
from transformer.data.corpora.treebank import (
    CRAFT_FILE,
    CRAFT_SHA256,
    load_treebank,
    split_articles,
)
from transformer.recipes.record import read_translations
from transformer.training.config import TrainingConfig
from transformer_book.studies.parsing.linearised_trees import (
    from_brackets,
    to_brackets,
)
from transformer_book.studies.parsing.study import (
    MAX_WORDS,
    OUTPUTS,
    PLAN,
    RECIPES,
    SEARCHES,
    SEEDS,
    parts_to_score,
    recorded_study,
    run_name,
    scores_of,
)

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(scope="module")
def record():
    return recorded_study()


@pytest.fixture(scope="module")
def outputs():
    return read_translations(OUTPUTS)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """The trees that were scored; reading the other articles would take a while."""
    folder = tmp_path_factory.mktemp("test")
    with tarfile.open(EMBEDDED / "craft-treebank" / CRAFT_FILE) as archive:
        data = {
            Path(member.name).stem: archive.extractfile(member).read()
            for member in archive
            if member.isfile()
        }
    for name in split_articles(data)["test"]:
        (folder / f"{name}.tree").write_bytes(data[name])
    return parts_to_score(load_treebank(folder).trees())


def test_the_record_is_of_the_shipped_treebank(record, parts):
    bank = record["treebank"]
    assert bank["sha256"] == CRAFT_SHA256 and bank["max_words"] == MAX_WORDS
    assert bank["test"] == {name: len(trees) for name, trees in parts.items()}


def test_every_parser_is_recorded_with_the_recipe_that_is_here(record):
    assert record["runs"].keys() == {run_name(*key, seed) for key in RECIPES for seed in SEEDS}
    for run in record["runs"].values():
        recipe = RECIPES[run["architecture"], run["word"]]
        training = replace(recipe.training, seed=run["seed"])
        assert TrainingConfig(**run["training"]) == training
        model = replace(recipe.model, vocab_size=run["model"]["vocab_size"])
        assert type(recipe.model)(**run["model"]) == model
        assert run["steps"] == training.max_steps
        assert [(s["search"], s["part"]) for s in run["scores"]] == PLAN
        assert set(SEARCHES) == {search for search, _ in PLAN}


def test_the_scores_are_those_of_the_outputs(record, parts, outputs):
    for name, run in record["runs"].items():
        for score in run["scores"]:
            lines = outputs[f"{name}, {score['search']}, {score['part']}"]
            again = scores_of(parts[score["part"]], lines)
            assert {k: v for k, v in score.items() if k in again} == again
            assert not score["search"].startswith("trees") or score["malformed"] == 0


def phrases(pieces, marks):
    """Count the phrases of brackets, without the package; ``marks`` are places of punctuation."""
    found, begun, word, place = Counter(), [], 0, 0
    for piece in pieces:
        if piece[0] == "(":
            begun.append((piece[1:], place))
        elif piece[0] == ")":
            label, start = begun.pop()
            if place > start and label not in ("TOP", "S1", "ROOT", ""):
                found["ADVP" if label == "PRT" else label, start, place] += 1
        else:
            place += word not in marks
            word += 1
    return found


def test_the_f1_of_whole_trees_is_counted_again_without_the_package(record, parts, outputs):
    for name, run in record["runs"].items():
        for score in run["scores"]:
            right = both = 0
            lines = outputs[f"{name}, {score['search']}, {score['part']}"]
            for tree, line in zip(parts[score["part"]], lines, strict=True):
                tags = [leaf.label for leaf in tree.leaves()]
                marks = {i for i, tag in enumerate(tags) if tag in (",", ":", "``", "''", ".")}
                if from_brackets(line.split(), tree.words()).faults:
                    continue
                ours, theirs = phrases(line.split(), marks), phrases(to_brackets(tree), marks)
                right += (ours & theirs).total()
                both += ours.total() + theirs.total()
            assert score["f1_skipping"] == pytest.approx(200 * right / both)
