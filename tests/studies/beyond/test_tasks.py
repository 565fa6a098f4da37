"""The data and the scores of the four tasks."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from transformer.data.corpora import load_corpus
from transformer.data.corpora.treebank import read_trees
from transformer_book.studies.other_tasks import digits, rivers, words
from transformer_book.studies.other_tasks.tasks import PARTS, _boosted_words, load_task


def test_patches_are_squares_in_reading_order():
    images = torch.rand(3, 8, 8)
    found = digits.cut_patches(images)
    assert found.shape == (3, 16, 4)
    for i in range(16):
        row, column = divmod(i, 4)
        square = images[:, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
        assert torch.equal(found[:, i], square.flatten(1))


def test_the_digits_are_split_at_the_end_of_the_file():
    learn, probe = digits.load_digits()
    assert (len(learn), len(probe)) == (1200, 597)
    target = load_digits().target
    assert learn.labels.tolist() + probe.labels.tolist() == target.tolist()
    assert learn.images.max() == 1.0


def test_the_rivers_are_as_published():
    record = rivers.load_rivers()
    assert record.flow.shape == record.rain.shape == (4, rivers.DAYS)
    # 255 cubic feet per second at Cherryfield on 1 January 2000, from 587,675,987 square metres.
    assert record.flow[0, 0] == pytest.approx(
        255 * 0.3048**3 * 86400 / 587_675_987 * 1000, abs=1e-3
    )
    assert record.temperature[2, 0] == pytest.approx((16.14 - 2.24) / 2, abs=0.06)
    assert 800 < record.rain[1].sum() / 3 < 1200


def test_a_window_has_the_coming_rain_and_no_coming_flow():
    record = rivers.load_rivers()
    found = rivers.cut_windows(record, 0, 40)
    assert found.inputs.shape == (4 * 16, 25, 6)
    fifth = 4 * 3 + 2  # fourth day, third river
    assert found.river[fifth] == 2
    flow = torch.tensor(record.flow[2, 3:28], dtype=torch.float32)
    torch.testing.assert_close(found.flow[fifth], flow[20:], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found.inputs[fifth, :20, 1].square(), flow[:20])
    torch.testing.assert_close(found.today[fifth], flow[19])
    rain = torch.tensor(record.rain[2, 3:28], dtype=torch.float32)
    torch.testing.assert_close(found.inputs[fifth, :, 0].square(), rain)
    assert found.inputs[fifth, 20:, 1].eq(0).all()
    assert found.inputs[fifth, :, 5].tolist() == [0] * 20 + [1] * 5
    with pytest.raises(ValueError, match="25 days"):
        rivers.cut_windows(record, 0, 24)


def test_efficiency_of_perfect_mean_and_wrong_forecasts():
    truth = torch.tensor([[1.0], [2.0], [6.0]])
    assert rivers.efficiency(truth, truth) == 1
    assert rivers.efficiency(torch.full((3, 1), 3.0), truth) == 0
    assert rivers.efficiency(-truth, truth) < 0


def test_names_are_capitals_where_no_sentence_begins():
    found = words.find_names(
        "Tom told Mary's sister that I'm in New York. Mary laughed, and I left."
    )
    assert [w for w, name in zip(found.words, found.names, strict=True) if name] == [
        "mary's", "new", "york",
    ]  # fmt: skip
    assert found.words[:2] == ["tom", "told"] and found.words[-1] == "."
    texts = ["I like Mary a lot.", "I like Mary a lot.", "No.", "Tom likes Mary a lot."]
    assert len(words.named_sentences(texts, 9)) == 2 and len(words.named_sentences(texts, 1)) == 1


TREE = """( (S (PP (IN In) (NP (NN winter))) (, ,) (NP (DT the) (NN animal))
(VP (MD may) (VP (VB cross) (NP (DT the) (NN street)))) (. .)) )"""


def test_subject_and_object_of_a_tree():
    (tree,) = read_trees(TREE)
    found = words.find_phrases(tree)
    subject, thing = (" ".join(found.words[slice(*span)]) for span in found.spans)
    assert (subject, thing) == ("the animal", "the street")
    (fragment,) = read_trees("( (NP (DT the) (NN animal)) )")
    assert words.find_phrases(fragment) is None
    assert words.phrases_of([tree, fragment]) == [found]
    assert words.phrases_of([tree], longest=8) == []


def test_rare_words_share_an_id_by_their_ending():
    vocabulary = words.WordIds([["walking", "tom"], ["tom", "zygosity"]])
    assert len(vocabulary) == 4 + 1 + 2
    assert vocabulary.encode(["talking"]) == vocabulary.encode(["walking"])
    assert vocabulary.encode(["tom"]) != vocabulary.encode(["bob"]) == [3]


def test_a_score_is_that_of_its_rule():
    task = load_task("digits")
    perfect = torch.nn.functional.one_hot(task.test_answers["label"], 10).float()
    assert task.score(perfect, task.test_answers) == {"right, %": 100}
    task = load_task("rivers")
    still = torch.zeros(len(task.test_inputs), 25, 1)
    found = task.score(still, task.test_answers)
    assert found["efficiency"] == pytest.approx(task.simple[1]()["efficiency"], abs=1e-6)
    assert found["day 1"] > found["day 5"]


@pytest.mark.parametrize(
    ("name", "sizes"), [("digits", (1000, 200, 1200)), ("rivers", (2096, 636, 2828))]
)
def test_the_validation_set_is_a_part_of_the_training_set(name, sizes):
    chosen, tested = (load_task(name, part) for part in PARTS)

    def rows(inputs):
        return {tuple(row.flatten().tolist()) for row in inputs}

    assert (len(chosen.inputs), len(chosen.test_inputs), len(tested.inputs)) == sizes
    assert rows(chosen.test_inputs) <= rows(tested.inputs)
    assert not rows(chosen.test_inputs) & rows(tested.test_inputs)
    assert not rows(chosen.test_inputs) & rows(chosen.inputs)


def test_the_three_sets_of_names_share_no_sentence():
    splits = load_corpus("tatoeba-en-de").splits
    train, chosen, tested = (
        [each.words for each in words.named_sentences(splits[name].source, count)]
        for name, count in (("train", 6000), ("validation", 1000), ("challenge", 3000))
    )
    sets = [{" ".join(each) for each in part} for part in (train, chosen, tested)]
    assert len(set.union(*sets)) == 6000 + 1000 + 3000
    for part, texts in zip(PARTS, (chosen, tested), strict=True):
        task = load_task("names", part)
        assert task.test_inputs.count_nonzero(dim=1).tolist() == [*map(len, texts)]
        assert task.inputs.count_nonzero(dim=1).tolist() == [*map(len, train)]


def test_boosted_words_learn_which_words_are_marked():
    draw = np.random.default_rng(0)
    ids = [draw.integers(4, 8, 6).tolist() for _ in range(60)]
    marks = [[i == 5 for i in row] for row in ids]
    (odds,) = _boosted_words(ids, [marks], ids[:10])
    assert ((odds > 0) == np.concatenate(marks[:10])).all()
