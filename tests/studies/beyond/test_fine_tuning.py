"""Forms of address are recognised, and fine-tuning changes only the copy."""

import pytest
import torch

from transformer.data.parallel import Split
from transformer.data.tokenizer import Tokenizer
from transformer.inference.translator import Translator
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer_book.studies.other_tasks.fine_tuning import (
    address_of,
    address_shares,
    fine_tune,
    pairs_with,
)


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


def test_pairs_and_shares_of_one_form():
    assert pairs_with(PAIRS, "formal").target == ["Sie schlafen", "Sie rennen"]
    assert pairs_with(PAIRS, "formal", 1).source == ["you sleep"]
    found = address_shares(PAIRS.source, PAIRS.target)
    assert found == {"formal": 0.5, "familiar": 0.25, "none": 0.25}


@pytest.mark.parametrize("own_target_tokenizer", [False, True])  # as in a Marian model
def test_a_copy_learns_and_the_original_stays(own_target_tokenizer):
    tokenizer = Tokenizer.train([*PAIRS.source, *PAIRS.target], 270)
    other = Tokenizer.train(["Sie schlafen wir essen du isst Sie rennen " * 3], 268)
    torch.manual_seed(0)
    config = TransformerConfig(270, d_model=32, d_ff=32, num_heads=2, num_layers=1, dropout=0.0)
    model = Transformer(config).eval()
    translator = Translator(
        model, tokenizer, target_tokenizer=other if own_target_tokenizer else None
    )
    before = {name: t.clone() for name, t in model.state_dict().items()}
    tuned = fine_tune(translator, PAIRS, 100, batch_size=4, rate=5e-3, epsilon=0.0)
    assert tuned.translate(PAIRS.source, beam_size=1) == PAIRS.target
    assert not tuned.model.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
