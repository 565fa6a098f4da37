"""The pictures of the whole model show the shipped model, and its own tokens."""

import re

import torch
from drawn import words

from transformer.inference.decoding import greedy_search
from transformer.inference.translator import Translator
from transformer_book.pictures.assembly import encode_once, zoom


def test_the_stacks_are_as_deep_as_those_of_the_shipped_model():
    shipped = Translator.from_pretrained("tatoeba-en-de")
    shown = words(zoom().drawn[0])
    assert shown.count("Layer 1") == 2
    assert max(int(word[6:]) for word in shown if re.fullmatch(r"Layer \d", word)) == len(
        shipped.model.encoder
    )
    for name, times in {"Add & norm": 5, "Feed-forward": 2, "Cross-attention": 1}.items():
        assert shown.count(name) == times


def test_the_calls_are_those_of_greedy_search():
    shipped = Translator.from_pretrained("tatoeba-en-de")
    tokenizer = shipped.tokenizer
    sentence = "The animal didn't cross the street because it was too tired"
    source = [*tokenizer.encode(sentence), tokenizer.eos_id]
    written = greedy_search(shipped.model, torch.tensor([source]))[0].tokens
    written = [t.strip("▁") for t in tokenizer.tokens([*written, tokenizer.eos_id])]
    shown = words(encode_once().drawn[0])
    assert len(source) == encode_once().drawn[0].svg().count('width="8"')
    for i, token in enumerate(written[:4]):
        assert " ".join(["<bos>", *written[:i]]) in shown and token in shown
    assert f"call {len(written)}" in shown and "<bos> Das Tier … war ." in shown
    assert written[-3:] == ["war", ".", "<eos>"]
