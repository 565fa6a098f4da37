"""The pictures of chapters 14 and 15 show the shipped model's predictions."""

import re

import torch
from drawn import words

from transformer.inference.translator import Translator
from transformer_book.pictures import SENTENCE
from transformer_book.pictures.recipe.training import target_and_prediction


def test_probabilities_and_losses_are_the_models():
    translator = Translator.from_pretrained("tatoeba-en-de")
    model, tokenizer = translator.model.eval(), translator.tokenizer
    labels = tokenizer.encode(translator.translate([SENTENCE])[0])[:6]
    source = torch.tensor([[*tokenizer.encode(SENTENCE), tokenizer.eos_id]])
    with torch.no_grad():
        logits = model(source, torch.tensor([[tokenizer.bos_id, *labels[:-1]]]))[0]
    p = logits.softmax(dim=-1)
    for drawing in target_and_prediction().drawn:
        shown = words(drawing)
        assert shown.count("1") == 6 and shown.count("0") == 30
        table = [word for word in shown if re.fullmatch(r"[01]\.\d\d", word)]
        cells, losses = table[:42], table[42:]
        for i, label in enumerate(labels):
            assert cells[7 * i : 7 * i + 6] == [f"{p[i, j]:.2f}" for j in labels]
            assert losses[i] == f"{-p[i, label].log():.2f}"
