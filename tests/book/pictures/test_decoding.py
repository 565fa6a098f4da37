"""The pictures of decoding show what the package's searches find with the shipped model."""

import math
import re
from html import unescape

import torch

from transformer.inference.decoding import beam_search, greedy_search
from transformer.inference.translator import Translator
from transformer_book.pictures.recipe.decoding import EXAMPLE, beam_as_tree, word_by_word
from transformer_book.studies.decoding.steps import record_search


def words(picture):
    return [unescape(text) for text in re.findall(r"<text[^>]*>([^<]+)<", picture.drawn[0].svg())]


def shipped():
    translator = Translator.from_pretrained("tatoeba-en-de")
    tokenizer = translator.tokenizer
    source = torch.tensor([[*tokenizer.encode(EXAMPLE), tokenizer.eos_id]])
    return translator.model, tokenizer, source


def test_the_words_fed_back_are_those_of_greedy_search():
    model, tokenizer, source = shipped()
    [found] = greedy_search(model, source)
    written = [token.strip("▁") for token in tokenizer.tokens(found.tokens[:4])]
    shown = words(word_by_word())
    start = shown.index("<bos>")
    # A step has its input, the decoder, and three tokens with their shares.
    assert [shown[start + 8 * i] for i in range(4)] == ["<bos>", *written[:3]]
    assert [shown[start + 8 * i + 2] for i in range(4)] == written
    with torch.no_grad():
        given = torch.tensor([[tokenizer.bos_id, *found.tokens[:3]]])
        best = model.eval()(source, given)[0].softmax(dim=-1).topk(3)
    for i, row in enumerate(best.values.tolist()):
        shares = [f"{100 * p:.0f}%" if p >= 0.005 else "<1%" for p in row]
        assert shown[start + 8 * i + 3 : start + 8 * i + 8 : 2] == shares
    assert f"{source.size(1)} vectors" in shown


def test_the_tree_is_the_search_of_the_package():
    model, tokenizer, source = shipped()
    search = record_search(model, source, 2, [(0.0, "gnmt")])
    shown, kept = words(beam_as_tree()), []
    last = next(i for i, step in enumerate(search.steps)
                if step[0].tokens[-1] == tokenizer.eos_id)  # fmt: skip
    for step in [*search.steps[1:8], search.steps[last]]:
        kept += [found for found in step if found.fate != "dropped"][:2]
    names = [tokenizer.decode(found.tokens) for found in kept[:2]]  # the first are whole
    names += [tokenizer.tokens([found.tokens[-1]])[0].strip("▁") for found in kept[2:]]
    shares = [f"{100 * math.exp(found.log_probability):.1f}%" for found in kept]
    pairs = list(zip(shown, shown[1:], strict=False))
    assert all(pair in pairs for pair in zip(names, shares, strict=True))
    assert len(shares) == sum(word.endswith("%") for word in shown) == 16
    [wide], [greedy] = beam_search(model, source, 2, 0.0), greedy_search(model, source)
    assert wide.log_probability > greedy.log_probability
    assert f"{100 * math.exp(wide.log_probability):.1f}%" in shown
