"""Forms of occupations are matched as whole words and counted by the English hint."""

import numpy as np
import pytest
import torch

from transformer.data.tokenizer import Tokenizer
from transformer.inference.translator import Translator
from transformer.lab.beyond import gender
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer

BY_NOUN = {occupation.english: occupation for occupation in gender.OCCUPATIONS}


@pytest.mark.parametrize(
    ("noun", "german", "form"),
    [
        ("teacher", "Sie ist Lehrerin.", "feminine"),
        ("teacher", "Das Auto des Lehrers.", "masculine"),
        ("teacher", "Ein Deutschlehrer.", "other"),
        ("teacher", "Lehrer und Lehrerin", "other"),
        ("student", "Ich kenne den Studenten.", "masculine"),
        ("doctor", "Er ist Doktor.", "masculine"),
        ("doctor", "Die Ärztin kommt.", "feminine"),
        ("nurse", "Er ist Krankenschwester.", "feminine"),
        ("boss", "Wer ist hier die Chefin?", "feminine"),
    ],
)
def test_forms(noun, german, form):
    assert BY_NOUN[noun].gender_of(german) == form


def test_the_two_forms_of_an_occupation_never_share_a_word():
    for occupation in gender.OCCUPATIONS:
        for form in occupation.masculine:
            assert occupation.gender_of(f"ein {form}") == "masculine"
        for form in occupation.feminine:
            assert occupation.gender_of(f"eine {form}") == "feminine"
    assert len(BY_NOUN) == len(gender.OCCUPATIONS)


def test_counts_in_text():
    english = ["She is a doctor.", "She is a doctor.", "He, a doctor", "Doctors are here."]
    german = ["Sie ist Ärztin.", "Sie ist Arzt.", "Er, ein Arzt", "Ärzte sind hier."]
    found = gender.counts_in_text([BY_NOUN["doctor"], BY_NOUN["cook"]], english, german)
    assert found["doctor"]["a woman"] == {"feminine": 1, "masculine": 1}
    assert found["doctor"]["a man"] == {"masculine": 1} and not found["doctor"]["not said"]
    assert not any(found["cook"].values())


def test_the_chance_of_a_form_is_the_model_s_own():
    english, german = ["she is a cook"] * 2, ["sie ist Koch", "sie ist Koechin"]
    tokenizer = Tokenizer.train([*english, *german], 270)
    torch.manual_seed(0)
    config = TransformerConfig(270, d_model=16, d_ff=16, num_heads=2, num_layers=1)
    translator = Translator(Transformer(config).eval(), tokenizer)

    def probability(text):
        target = [*tokenizer.encode(text), 2]
        source = torch.tensor([[*tokenizer.encode(english[0]), 2]])
        with torch.no_grad():
            logits = translator.model(source, torch.tensor([[1, *target[:-1]]]))[0]
        return logits.softmax(-1)[range(len(target)), target].double().prod().item()

    m, f = map(probability, german)
    found = gender.feminine_chance(
        translator, ["she is a cook"] * 2, german, list(reversed(german))
    )
    np.testing.assert_allclose(found, [f / (m + f), m / (m + f)], rtol=1e-3)
