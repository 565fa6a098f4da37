"""Our models as Marian's: the same logits there, and after the way back."""

import json
from functools import partial

import pytest
import torch

from tests.interop import small
from tests.interop.small import TEXTS
from transformer.data.tokenizer import Tokenizer
from transformer.interop import from_marian, to_marian
from transformer.interop.marian_export import sentencepiece_model
from transformer.interop.marian_weights import stack_names
from transformer.saving.locate import locate

pytest.importorskip(
    "sentencepiece", reason="Marian's pieces need sentencepiece: requirements-test.txt"
)

make = partial(small.make, 330, d_model=24, d_ff=20, num_layers=2, num_decoder_layers=1)


def ids(texts, tokenizer):
    rows = [torch.tensor([*tokenizer.encode(text), 2]) for text in texts]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


def require_equal_logits(ours, theirs, start):
    """``theirs`` maps source and decoder input to logits."""
    source, target = (ids(TEXTS[i : i + 2], ours.tokenizer) for i in (0, 2))
    first, real = torch.ones(2, 1, dtype=torch.long), target != 0
    with torch.no_grad():
        expected = ours.model(source, torch.cat([first, target[:, :-1]], 1))[real]
        found = theirs(source, torch.cat([start * first, target[:, :-1]], 1))[real]
    # Layer norms have another epsilon there; padding and BOS can no longer be chosen.
    torch.testing.assert_close(found[:, 2:330], expected[:, 2:], rtol=1e-3, atol=1e-3)
    assert found[:, [0, 1, 330]].max() < -9000


def test_text_is_cut_the_same_and_comes_back(tmp_path):
    ours = make()
    to_marian(ours, tmp_path)
    back = from_marian(tmp_path)
    unseen = ["the lake is fine", "Das Wetter!", "a station  in the train"]
    for text in [*TEXTS, *unseen[:2]]:
        assert back.tokenizer.encode(text) == ours.tokenizer.encode(text)
        assert back.tokenizer.decode(back.tokenizer.encode(text)) == text
    assert back.tokenizer.encode("日")[-1] == 330  # no piece: unknown, where ours has bytes
    assert json.loads((tmp_path / "config.json").read_text())["vocab_size"] == 331


def test_merges_are_tried_in_their_order():
    """With the shipped vocabulary: a small one has too few ways to cut a word."""
    import sentencepiece

    tokenizer = Tokenizer.load(locate("tatoeba-en-de").folder / "tokenizer.json")
    model = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model(tokenizer))
    for text in [*TEXTS, "Unbelievable interpretations notwithstanding, Geschwindigkeit zählt."]:
        pieces = model.encode(text, out_type=str)
        assert pieces == tokenizer.tokens(tokenizer.encode(text))


@pytest.mark.parametrize("changes", [{}, dict(activation="gelu", d_model=15, num_heads=3)])
def test_hugging_face_computes_the_same_and_so_does_the_way_back(tmp_path, changes):
    transformers = pytest.importorskip(
        "transformers", reason="needs the original: requirements-test.txt"
    )
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    ours = make(**changes)
    to_marian(ours, tmp_path)
    back = from_marian(tmp_path).model
    require_equal_logits(ours, back, back.config.bos_id)
    theirs = transformers.MarianMTModel.from_pretrained(tmp_path).eval()

    def logits(source, target):
        return theirs(source, attention_mask=source != 0, decoder_input_ids=target).logits

    require_equal_logits(ours, logits, theirs.config.decoder_start_token_id)
    names = set(theirs.state_dict())
    assert {pair.theirs for pair in stack_names(2, 1)} <= names
    tokenizer = transformers.MarianTokenizer.from_pretrained(tmp_path)
    assert tokenizer(TEXTS[0]).input_ids == [*ours.tokenizer.encode(TEXTS[0]), 2]


@pytest.mark.parametrize("changes", [
    dict(norm="pre"), dict(positions="learned"), dict(attention_bias=False), dict(d_k=8),
    dict(first_input="zeros"), dict(num_kv_heads=2), dict(final_norm=True),
])  # fmt: skip
def test_what_marian_lacks_is_named(tmp_path, changes):
    (name,) = changes
    with pytest.raises(ValueError, match=name.replace("final", "encoder")):
        to_marian(make(**changes), tmp_path / "no")
    assert not (tmp_path / "no").exists()
