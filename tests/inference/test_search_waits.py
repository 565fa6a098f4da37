"""A search waits for the device once per token, and a translation copies each batch there once."""

import pytest

from tests.pretend_device import DEVICE, pretend_device
from transformer.data.tokenizer import Tokenizer
from transformer.inference.decoding import Hypothesis, beam_search, greedy_search
from transformer.inference.translator import Translator

pytestmark = pytest.mark.usefixtures("unchecked")
PAD, EOS = 0, 2


def flat(found) -> list[Hypothesis]:
    return [best for each in found for best in (each if isinstance(each, list) else [each])]


@pytest.mark.parametrize(
    "search", [greedy_search, beam_search, lambda m, s: beam_search(m, s, 3, n_best=3)]
)
def test_one_wait_per_token(small_transformer, pad_rows, search):
    model = small_transformer(seed=2).eval()
    rows = [[token % 20 + 3 for token in range(n, 3 * n)] + [EOS] for n in range(1, 12)]
    source = pad_rows(rows)
    expected = search(model, source)
    steps = []
    decode = model.decode_next
    with pretend_device() as device:
        model.to(DEVICE)
        model.decode_next = lambda *given: steps.append(1) or decode(*given)
        source = source.to(DEVICE)
        device.waits.clear()
        found = search(model, source)
    for theirs, ours in zip(flat(expected), flat(found), strict=True):
        assert ours.tokens == theirs.tokens
        assert ours.score == pytest.approx(theirs.score, abs=1e-4)
    # One before, for the lengths of the source, and a few after, for the translations.
    assert len(steps) <= device.waits.total() <= len(steps) + 4, device.waits


def test_a_translation_copies_each_batch_once(small_transformer):
    texts = ["a dog", "a cat", "a dog sees a cat", "a cat sees"]
    tokenizer = Tokenizer.train(texts * 9, vocab_size=265)
    translator = Translator(small_transformer(265, max_length=20), tokenizer, "cpu")
    expected = translator.translate(texts, max_length=5)
    with pretend_device() as device:
        translator.model.to(DEVICE)
        device.waits.clear()
        assert translator.translate(texts, max_length=5, batch_size=2) == expected
    copies = sum(count for what, count in device.waits.items() if what.endswith(", to the device"))
    assert copies == 2, device.waits
