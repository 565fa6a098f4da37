"""The pictures of chapter 4 show numbers of the model and of the formulas."""

import torch
from drawn import words

from transformer import Translator
from transformer.model.attention import record_attention
from transformer_book.pictures.scaling import (
    HEAD,
    LAYER,
    SENTENCE,
    scores_of_it,
    three_divisors,
)


def test_the_weights_of_it_are_those_of_the_model():
    translator = Translator.from_pretrained("tatoeba-en-de")
    tokenizer = translator.tokenizer
    tokens = torch.tensor([[*tokenizer.encode(SENTENCE), tokenizer.eos_id]])
    with torch.no_grad(), record_attention(translator.model) as recorded:
        translator.model.encode(tokens)
    tokens_read, scores = scores_of_it()
    weights = recorded[f"encoder.{LAYER}.self_attention"][0, HEAD, tokens_read.index("it")]
    torch.testing.assert_close((scores / 8).softmax(dim=0), weights, rtol=1e-4, atol=1e-4)
    assert f"{weights.max():.2f}" in words(three_divisors().drawn[0])
