"""Going on with a trained translator: who is addressed how, and nothing but the copy changes."""

import pytest
import torch

from transformer.data.parallel import Split
from transformer.data.tokenizer import Tokenizer
from transformer.inference.translator import Translator
from transformer.lab.beyond import fine_tuning
from transformer.lab.beyond.fine_tuning import address_of
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer


@pytest.mark.parametrize(
    ("english", "german", "form"),
    [
        ("Where do you live?", "Wo wohnen Sie?", "formal"),
        ("Where do you live?", "Wo wohnst du?", "familiar"),
        ("You are right.", "Sie haben recht.", "formal"),
        ("She likes you.", "Sie mag dich.", "familiar"),
        ("She likes you.", "Sie mag Sie.", "formal"),
        ("She knows you.", "Sie kennt Tom.", "none"),  # the first word is she
        ("They sleep.", "Sie schlafen.", "none"),
        ("Is that your car?", "Ist das Ihr Auto?", "formal"),
        ("Are these your children?", "Sind das eure Kinder?", "familiar"),
        ("You and she", "Du und Sie", "none"),
        ("I can see the moon.", "Man sieht den Mond, wenn du willst.", "none"),
        ("You never know.", "Man weiß nie.", "none"),
        ('He said: "You are late."', "Er sagte: „Du bist spät.“", "familiar"),
    ],
)
def test_address(english, german, form):
    assert address_of(english, german) == form


PAIRS = Split(
    ["you sleep", "you eat", "we eat", "you run"],
    ["Sie schlafen", "du isst", "wir essen", "Sie rennen"],
)


def test_pairs_of_one_form_in_their_order():
    assert fine_tuning.pairs_with(PAIRS, "formal").target == ["Sie schlafen", "Sie rennen"]
    assert fine_tuning.pairs_with(PAIRS, "formal", 1).source == ["you sleep"]
    assert fine_tuning.pairs_with(PAIRS, "familiar").source == ["you eat"]


def test_shares():
    found = fine_tuning.address_shares(PAIRS.source, PAIRS.target)
    assert found == {"formal": 0.5, "familiar": 0.25, "none": 0.25}


@pytest.fixture(scope="module")
def translator():
    tokenizer = Tokenizer.train([*PAIRS.source, *PAIRS.target], 270)
    torch.manual_seed(0)
    config = TransformerConfig(270, d_model=32, d_ff=32, num_heads=2, num_layers=1, dropout=0.0)
    return Translator(Transformer(config).eval(), tokenizer)


def test_a_copy_learns_and_the_original_stays(translator):
    before = {name: t.clone() for name, t in translator.model.state_dict().items()}
    tuned = fine_tuning.fine_tune(translator, PAIRS, 100, batch_size=4, rate=5e-3, epsilon=0.0)
    assert tuned.translate(PAIRS.source, beam_size=1) == PAIRS.target
    assert not tuned.model.training and tuned.model is not translator.model
    for name, tensor in translator.model.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_the_target_is_cut_by_its_own_tokenizer(translator):
    """As in a model of Marian's, where each language has pieces of its own."""
    other = Tokenizer.train(["Sie schlafen wir essen du isst Sie rennen " * 3], 268)
    two = Translator(translator.model, translator.tokenizer, target_tokenizer=other)
    tuned = fine_tuning.fine_tune(two, PAIRS, 100, batch_size=4, rate=5e-3, epsilon=0.0)
    assert tuned.translate(PAIRS.source, beam_size=1) == PAIRS.target
