"""The encoder alone, its rivals, and the data and scores of the other tasks."""

import pytest
import torch
from torch import nn

from transformer.data.corpora.treebank import read_trees
from transformer.model.config import TransformerConfig
from transformer.model.embedding import TokenEmbedding
from transformer.model.transformer import Transformer
from transformer_book.studies.other_tasks import rivers, study, words
from transformer_book.studies.other_tasks.encoder_model import (
    EncoderModel,
    best_span,
    train_by_rows,
)
from transformer_book.studies.other_tasks.fine_tuning import address_of
from transformer_book.studies.other_tasks.gender import is_feminine
from transformer_book.studies.other_tasks.rivals import AttentiveGRU, LSTMModel
from transformer_book.studies.other_tasks.tasks import PARTS, load_task

CONFIG = TransformerConfig(vocab_size=9, d_model=8, d_ff=16, num_heads=2, num_layers=2, dropout=0.0)


def test_it_computes_what_the_model_s_encoder_computes():
    whole = Transformer(CONFIG).eval()
    model = EncoderModel(CONFIG, whole.embedding, 3, each=True).eval()
    model.layers = whole.encoder
    ids = torch.tensor([[3, 4, 5, 0], [6, 7, 8, 3]])
    torch.testing.assert_close(model(ids), model.answer(whole.encode(ids)))


def test_the_loop_uses_each_example_once_before_any_again():
    model, seen = nn.Linear(1, 1), []

    def loss(rows):
        seen.append(rows.tolist())
        return model(rows[:, None].float()).square().mean()

    train_by_rows(model, loss, examples=12, steps=6, batch_size=4, seed=0)
    for first in (0, 3):
        assert sorted(sum(seen[first : first + 3], [])) == list(range(12))
    assert seen[:3] != seen[3:]


@pytest.mark.parametrize(
    ("english", "german", "form"),
    [
        ("You are right.", "Sie haben recht.", "formal"),
        ("She likes you.", "Sie mag dich.", "familiar"),
        ("She knows you.", "Sie kennt Tom.", "none"),  # the first word is she
        ("Is that your car?", "Ist das Ihr Auto?", "formal"),
        ("You and she", "Du und Sie", "none"),
        ("You never know.", "Man weiß nie.", "none"),
    ],
)
def test_forms_of_address(english, german, form):
    assert address_of(english, german) == form


@pytest.mark.parametrize(
    ("occupation", "german", "feminine"),
    [
        ("teacher", "Das Buch des Lehrers ist neu.", False),
        ("teacher", "Sie ist die neue Mathematiklehrerin.", True),
        ("teacher", "Der Lehrer kennt die Lehrerin.", None),
        ("teacher", "Er unterrichtet.", None),
        ("doctor", "Maria ist Ärztin.", True),
        ("doctor", "Ich habe einen Arzttermin.", None),
    ],
)
def test_the_form_of_an_occupation(occupation, german, feminine):
    assert is_feminine(occupation, german) is feminine


@pytest.mark.parametrize("rival", [LSTMModel, AttentiveGRU])
def test_padding_changes_no_answer_of_a_rival(rival):
    torch.manual_seed(0)
    model = rival(TokenEmbedding(9, 8), 8, 2, each=True).eval()
    ids = torch.tensor([[3, 4, 5]])
    padded = torch.tensor([[3, 4, 5, 0, 0], [6, 7, 8, 3, 4]])
    torch.testing.assert_close(model(padded)[0, :3], model(ids)[0])
    model.each = False
    torch.testing.assert_close(model(padded)[0], model(ids)[0])


def test_the_best_span_is_in_order_and_within_the_text():
    logits = torch.full((1, 4, 2), -5.0)
    logits[0, 1, 0], logits[0, 2, 0] = -4.0, 3.0
    logits[0, 1, 1], logits[0, 3, 1] = 4.0, 2.0
    real = torch.ones(1, 4, dtype=torch.bool)
    assert [x.item() for x in best_span(logits, real)] == [2, 3]
    real[0, 3] = False
    assert [x.item() for x in best_span(logits, real)] == [1, 1]


def test_the_chosen_rate_is_the_best_on_validation_and_not_on_the_test():
    runs = [
        dict(task="a", method="b", factor=4, part="validation", rate=rate, scores={"right": x})
        for rate, found in ((1e-3, (1, 9)), (2e-3, (6, 7)), (5e-3, (2, 2)), (1e-2, (1, 1)),
                            (2e-2, (0, 0)))
        for x in found
    ]  # fmt: skip
    runs.append(runs[0] | dict(part="test", rate=1e-3, scores={"right": 100}))
    assert study.chosen_rate(runs, "a", "b", 4) == 2e-3
    assert study.scores_of(runs, "a", "b", 4, "validation", 2e-3).tolist() == [6, 7]
    assert study.scores_of(runs, "a", "b", 4).tolist() == [100]


def test_a_window_has_the_coming_rain_and_no_coming_flow():
    record = rivers.load_rivers()
    found = rivers.cut_windows(record, 0, 40)
    fifth = 4 * 3 + 2  # fourth day, third river
    flow = torch.tensor(record.flow[2, 3:28], dtype=torch.float32)
    torch.testing.assert_close(found.flow[fifth], flow[20:], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found.inputs[fifth, :20, 1].square(), flow[:20])
    rain = torch.tensor(record.rain[2, 3:28], dtype=torch.float32)
    torch.testing.assert_close(found.inputs[fifth, :, 0].square(), rain)
    assert found.inputs[fifth, 20:, 1].eq(0).all()
    assert found.inputs[fifth, :, 5].tolist() == [0] * 20 + [1] * 5


TREE = """( (S (PP (IN In) (NP (NN winter))) (, ,) (NP (DT the) (NN animal))
(VP (MD may) (VP (VB cross) (NP (DT the) (NN street)))) (. .)) )"""


def test_subject_and_object_of_a_tree():
    (tree,) = read_trees(TREE)
    found = words.find_phrases(tree)
    subject, thing = (" ".join(found.words[slice(*span)]) for span in found.spans)
    assert (subject, thing) == ("the animal", "the street")


@pytest.mark.parametrize("name", ["digits", "rivers"])
def test_the_validation_set_is_a_part_of_the_training_set(name):
    chosen, tested = (load_task(name, part) for part in PARTS)

    def rows(inputs):
        return {tuple(row.flatten().tolist()) for row in inputs}

    assert rows(chosen.test_inputs) <= rows(tested.inputs)
    assert not rows(chosen.test_inputs) & rows(tested.test_inputs)
    assert not rows(chosen.test_inputs) & rows(chosen.inputs)
