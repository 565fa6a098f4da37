"""The translator, with a tiny random model and a real tokenizer."""

import shutil

import numpy as np
import pytest
import torch

from transformer.data.tokenizer import Tokenizer
from transformer.inference import pretrained
from transformer.inference.decoding import beam_search
from transformer.inference.pretrained import locate_pretrained, shipped_names
from transformer.inference.translator import Translator

TEXTS = [
    "Where is the train station?",
    "No.",
    "",
    "The weather is fine today, and we go to the lake.",
    " \t\n",
    "No.",
    "Grüße aus Köln 🙂",
]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(TEXTS * 3, 270)


@pytest.fixture(scope="module")
def translator(unchecked, small_transformer, tokenizer):
    model = small_transformer(tokenizer.vocab_size, max_length=80)
    # Only readable pieces; otherwise its translations would be broken UTF-8.
    for token, piece in enumerate(tokenizer.tokens(range(tokenizer.vocab_size))):
        if not (piece.isascii() and piece.isalnum()) and token != tokenizer.eos_id:
            torch.nn.init.zeros_(model.output_weight[token])
    return Translator(model, tokenizer)


@pytest.fixture
def folder(translator, tmp_path):
    folder = tmp_path / "trained"
    translator.model.save_pretrained(folder)
    translator.tokenizer.save(folder / "tokenizer.json")
    return folder


@pytest.fixture
def offline(monkeypatch):
    """The Hub cannot be reached, and its cache is empty."""

    def refuse(name, **options):
        raise ConnectionError("no network\nat all")

    monkeypatch.setattr(pretrained, "snapshot_download", refuse)


# ------------------------------------------------------------------ translate


def test_each_text_gets_its_own_translation_in_order(translator):
    together = translator(TEXTS, max_length=20)
    assert len(together) == len(TEXTS)
    assert together == [translator([text], max_length=20)[0] for text in TEXTS]
    assert together[1] == together[5] != together[0]
    for batch_size in (2, 100):
        assert translator.translate(TEXTS, batch_size=batch_size, max_length=20) == together


def test_it_is_the_beam_search_of_the_text(translator, tokenizer):
    for text in (TEXTS[0], TEXTS[6]):
        ids = torch.tensor([[*tokenizer.encode(text), tokenizer.eos_id]])
        for options in (dict(), dict(beam_size=1), dict(alpha=2.0, penalty="fairseq")):
            options["max_length"] = 12
            best = beam_search(translator.model, ids, **options)[0]
            assert translator([text], **options) == [tokenizer.decode(best.tokens).strip()]


def test_one_text_gives_one_text_and_blanks_are_merged(translator):
    expected = translator(TEXTS, max_length=9)
    assert (expected[2], expected[4]) == ("", "")
    assert translator(TEXTS[0], max_length=9) == expected[0]
    assert translator((text for text in TEXTS[:2]), max_length=9) == expected[:2]
    assert translator("  Where is\tthe train \n station?  ", max_length=9) == expected[0]
    assert translator("") == "" and translator([]) == []


def test_bad_texts(translator):
    for bad, error in (
        (["fine", "zq" * 60], ValueError),
        (["fine", "half a \ud83d pair"], ValueError),
        (["fine", None], TypeError),
    ):
        with pytest.raises(error, match=r"texts\[1\]"):
            translator(text for text in bad)
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        translator.translate(TEXTS, batch_size=0)


def test_a_tokenizer_of_another_model(small_transformer, tokenizer):
    with pytest.raises(ValueError, match="tokenizer has 270 tokens, more than .* 269"):
        Translator(small_transformer(269), tokenizer)
    with pytest.raises(ValueError, match="tokenizer has eos_id 2, the model 3"):
        Translator(small_transformer(270, eos_id=3), tokenizer)


# ------------------------------------------------------------------ attention


def test_attention_has_a_label_for_every_row_and_column(translator):
    maps = translator.attention("Where is it?", "Wo ist es denn?")
    S, T = len(maps.source_tokens), len(maps.target_tokens)
    assert "".join(maps.source_tokens) == "Where▁is▁it?<eos>"
    assert "".join(maps.target_tokens) == "<bos>Wo▁ist▁es▁denn?"
    assert maps.predicted_tokens == [*maps.target_tokens[1:], "<eos>"]
    assert S != T
    assert maps.encoder.shape == (2, 2, S, S)
    assert maps.decoder.shape == (2, 2, T, T)
    assert maps.cross.shape == (2, 2, T, S)
    for weights in (maps.encoder, maps.decoder, maps.cross):
        assert isinstance(weights, np.ndarray)
        np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-5)
    assert np.all(np.triu(maps.decoder, k=1) == 0)
    assert np.any(np.triu(maps.encoder, k=1) > 0)


def test_attention_is_that_of_the_model_without_dropout(translator, tokenizer):
    translator.model.train()
    one, two = (translator.attention("Where is it?", "Wo?") for _ in range(2))
    np.testing.assert_array_equal(one.cross, two.cross)
    assert translator.model.training
    translator.model.eval()
    source = torch.tensor([[*tokenizer.encode("Where is it?"), 2]])
    target = torch.tensor([[1, *tokenizer.encode("Wo?")]])
    expected = translator.model.attention_weights(source, target)
    for layer in range(2):
        np.testing.assert_array_equal(one.cross[layer], expected.cross[layer][0])
        np.testing.assert_array_equal(one.encoder[layer], expected.encoder[layer][0])
        np.testing.assert_array_equal(one.decoder[layer], expected.decoder[layer][0])


# ------------------------------------------------------------------ loading


def test_what_was_saved_translates_the_same(translator, folder, capsys):
    expected = translator(TEXTS, max_length=20)
    for place in (folder, str(folder)):
        assert Translator.from_pretrained(place)(TEXTS, max_length=20) == expected
    assert capsys.readouterr().out == ""  # standard output may be a pipe
    elsewhere = Translator.from_pretrained(folder, device="meta")
    assert elsewhere.model.output_weight.device.type == "meta"


def test_a_shipped_name_wins_over_a_folder(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(pretrained, "SHIPPED_FOLDER", tmp_path / "shipped")
    monkeypatch.chdir(tmp_path)
    assert shipped_names() == []
    assert locate_pretrained("trained").resolve() == folder
    shutil.copytree(folder, tmp_path / "shipped" / "trained")
    (tmp_path / "shipped" / "half").mkdir()
    assert shipped_names() == ["trained"]
    assert locate_pretrained("trained") == tmp_path / "shipped" / "trained"
    assert locate_pretrained("./trained").resolve() == folder


@pytest.mark.parametrize("name", ["tatoeba-xx", "someone/something", "no such folder/at all/here"])
def test_unknown_names_give_one_line_without_a_network(offline, name):
    with pytest.raises(FileNotFoundError, match=f"no trained model '{name}'") as caught:
        Translator.from_pretrained(name)
    assert "\n" not in str(caught.value)
