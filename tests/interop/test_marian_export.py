"""Our models as Marian's: the same logits there, and the same translations when they come back."""

import json

import pytest
import torch

from transformer.data.tokenizer import Tokenizer
from transformer.inference.pretrained import locate_pretrained
from transformer.inference.translator import Translator
from transformer.interop import from_marian, to_marian
from transformer.interop.marian_export import sentencepiece_model
from transformer.interop.marian_names import coordinate_order, layer_names, stack_names
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer

pytest.importorskip("sentencepiece", reason="Marian's pieces need sentencepiece: requirements.txt")

TEXTS = [
    "Where is the train station?",
    "The weather is fine today, and we go to the lake.",
    "Zwei Hunde rennen am Strand, und das Wetter ist schön.",
    "I don't know. It's 12:30 o'clock!",
]


def make(**changes):
    tokenizer = Tokenizer.train(TEXTS * 3, 330)
    torch.manual_seed(0)
    small = dict(d_model=24, d_ff=20, num_heads=4, num_layers=2, num_decoder_layers=1)
    model = Transformer(TransformerConfig.from_dict(dict(vocab_size=330) | small | changes)).eval()
    with torch.no_grad():  # biases start at 0 and gains at 1, where a lost one would not show
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter += 0.2 * torch.randn_like(parameter)
    return Translator(model, tokenizer)


def ids(texts, tokenizer):
    rows = [torch.tensor([*tokenizer.encode(text), 2]) for text in texts]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


@pytest.mark.parametrize("changes", [{}, dict(activation="gelu", d_model=15, num_heads=3)])
def test_there_and_back(tmp_path, changes):
    ours = make(**changes)
    to_marian(ours, tmp_path / "new" / "folder")
    back = from_marian(tmp_path / "new" / "folder")
    source, target = (ids(TEXTS[i : i + 2], ours.tokenizer) for i in (0, 2))
    begun = [torch.full((2, 1), t.model.config.bos_id) for t in (ours, back)]
    with torch.no_grad():
        expected, found = (
            t.model(source, torch.cat([begin, target[:, :-1]], 1))
            for t, begin in zip((ours, back), begun, strict=True)
        )
    # Layer norms have another epsilon there; padding and begin can no longer be chosen.
    real = target != 0
    torch.testing.assert_close(found[real][:, 2:330], expected[real][:, 2:], rtol=1e-3, atol=1e-3)
    assert found[real][:, [0, 1, 330]].max() < -9000


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
    """On the vocabulary that ships: a small one has too few ways to cut a word."""
    import sentencepiece

    tokenizer = Tokenizer.load(locate_pretrained("tatoeba-en-de") / "tokenizer.json")
    model = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model(tokenizer))
    for text in [*TEXTS, "Unbelievable interpretations notwithstanding, Geschwindigkeit zählt."]:
        pieces = model.encode(text, out_type=str)
        assert pieces == tokenizer.tokens(tokenizer.encode(text))


def test_hugging_face_computes_the_same(tmp_path):
    transformers = pytest.importorskip(
        "transformers", reason="needs the original: requirements.txt"
    )
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    ours = make()
    to_marian(ours, tmp_path)
    theirs = transformers.MarianMTModel.from_pretrained(tmp_path).eval()
    source, target = (ids(TEXTS[i : i + 2], ours.tokenizer) for i in (0, 2))
    begun = [torch.full((2, 1), start) for start in (1, theirs.config.decoder_start_token_id)]
    with torch.no_grad():
        expected = ours.model(source, torch.cat([begun[0], target[:, :-1]], 1))
        shifted = torch.cat([begun[1], target[:, :-1]], 1)
        found = theirs(source, attention_mask=source != 0, decoder_input_ids=shifted).logits
    real = target != 0
    torch.testing.assert_close(found[real][:, 2:330], expected[real][:, 2:], rtol=1e-3, atol=1e-3)
    names = set(theirs.state_dict())
    assert {pair.theirs for pair in stack_names(2, 1)} <= names
    tokenizer = transformers.MarianTokenizer.from_pretrained(tmp_path)
    assert tokenizer(TEXTS[0]).input_ids == [*ours.tokenizer.encode(TEXTS[0]), 2]


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        (dict(norm="pre"), "norm"),
        (dict(sharing="none"), "sharing"),
        (dict(positions="learned"), "positions"),
        (dict(attention_bias=False), "attention_bias"),
        (dict(d_k=8), "d_k"),
        (dict(final_norm=True), "encoder_norm"),
    ],
)
def test_what_marian_lacks_is_named(tmp_path, changes, name):
    with pytest.raises(ValueError, match=name):
        to_marian(make(**changes), tmp_path / "no")
    assert not (tmp_path / "no").exists()


def test_two_tokenizers_are_refused(tmp_path):
    ours = make()
    two = Translator(ours.model, ours.tokenizer, target_tokenizer=make().tokenizer)
    with pytest.raises(ValueError, match="one joint tokenizer"):
        to_marian(two, tmp_path)


def test_the_list_of_names_covers_every_parameter_of_the_stacks():
    model = make().model
    ours = [name for name, _ in model.named_parameters() if name != "embedding.weight"]
    pairs = stack_names(2, 1)
    assert {pair.ours for pair in pairs} == set(ours)
    assert len({pair.theirs for pair in pairs}) == len(pairs)
    sizes = sum(pair.of(dict(model.named_parameters())[pair.ours]).numel() for pair in pairs)
    assert sizes == model.num_parameters() - model.embedding.weight.numel()
    assert not any("cross" in pair.ours for pair in layer_names("encoder", 0))


def test_coordinates_of_an_odd_size():
    assert coordinate_order(5).tolist() == [0, 3, 1, 4, 2]
    assert coordinate_order(4).tolist() == [0, 2, 1, 3]
