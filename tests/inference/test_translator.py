"""The translator, with a tiny random model and a real tokenizer."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from huggingface_hub import HfApi, ModelCard, RepoUrl
from huggingface_hub.utils import filter_repo_objects

from transformer.data.tokenizer import Tokenizer
from transformer.fast import is_enabled
from transformer.inference.decoding import beam_search
from transformer.inference.options import SearchOptions
from transformer.inference.results import Translation
from transformer.inference.sentences import in_capitals, split_into_sentences
from transformer.inference.translator import Translator
from transformer.model.transformer import Transformer

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
    model = small_transformer(tokenizer.vocab_size, positions="learned", max_length=80)
    # Only readable pieces; otherwise its translations would be broken UTF-8.
    for token, piece in enumerate(tokenizer.tokens(range(tokenizer.vocab_size))):
        if not (piece.isascii() and piece.isalnum()) and token != tokenizer.eos_id:
            torch.nn.init.zeros_(model.output_weight[token])
    return Translator(model, tokenizer)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A Hub on this disk: what is uploaded there can be downloaded; returns its folder."""
    place = tmp_path / "hub"

    def create_repo(self, repo_id, *, private, exist_ok):
        (place / repo_id).mkdir(parents=True, exist_ok=exist_ok)
        (place / f"{repo_id}.private").write_text(str(private))
        return RepoUrl(f"https://huggingface.co/{repo_id}")

    def create_branch(self, repo_id, *, branch, exist_ok):
        assert exist_ok
        (place / f"{repo_id}.branch").write_text(branch)

    def upload_folder(self, *, repo_id, folder_path, allow_patterns, delete_patterns, **options):
        for name in filter_repo_objects(
            os.listdir(place / repo_id), allow_patterns=delete_patterns or []
        ):
            (place / repo_id / name).unlink()
        for name in filter_repo_objects(os.listdir(folder_path), allow_patterns=allow_patterns):
            shutil.copy(Path(folder_path) / name, place / repo_id / name)

    def download(repo_id, *, allow_patterns, **options):
        if not (place / repo_id).is_dir():
            raise ConnectionError("no network")
        copy = tmp_path / "cache" / repo_id
        wanted = set(
            filter_repo_objects(os.listdir(place / repo_id), allow_patterns=allow_patterns)
        )
        shutil.copytree(
            place / repo_id, copy, ignore=lambda _, names: {*names} - wanted, dirs_exist_ok=True
        )
        return str(copy)

    monkeypatch.setattr(HfApi, "create_repo", create_repo)
    monkeypatch.setattr(HfApi, "create_branch", create_branch)
    monkeypatch.setattr(HfApi, "upload_folder", upload_folder)
    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    return place


# ------------------------------------------------------------------ translate


def test_each_text_gets_its_own_translation_in_order(translator):
    together = translator(TEXTS, max_length=20)
    assert len(together) == len(TEXTS)
    assert together == [translator([text], max_length=20)[0] for text in TEXTS]
    assert together[1] == together[5] != together[0]
    for batch_size in (2, 100):
        assert translator.translate(TEXTS, batch_size=batch_size, max_length=20) == together


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
    for other, kind in ((7, "int"), ({"a": "b"}, "dict")):
        with pytest.raises(TypeError, match=f"a string or several strings, got {kind}"):
            translator(other)


# ------------------------------------------------------------------ options and scores


def test_options_have_one_meaning_however_they_are_given(translator):
    translate = partial(translator.translate, TEXTS[:3], return_scores=True)
    expected = translate(beam_size=3, alpha=2.0, penalty="fairseq", max_length=9)
    assert expected != translate(max_length=9)
    assert translate(SearchOptions(3, 2.0, "fairseq", 9)) == expected
    assert translate(SearchOptions(3, 2.0, "fairseq"), max_length=9) == expected
    theirs = dict(num_beams=3, length_penalty=2.0, max_new_tokens=9)
    assert translate(penalty="fairseq", **theirs) == expected


@pytest.mark.parametrize(
    "options, error, told",
    [
        (dict(beem_size=3), TypeError, "'beem_size'; did you mean 'beam_size'"),
        (dict(temperature=1.0), TypeError, "'temperature'; expected one of beam_size"),
        (dict(beam_size=3, num_beams=3), TypeError, "twice, as beam_size and num_beams"),
        (dict(beam_size=2.5), ValueError, "beam_size must be a whole number .*, got 2.5"),
        (dict(beam_size=None), ValueError, "beam_size must be a whole number .*, got None"),
        (dict(alpha="x"), ValueError, "alpha must be a number from -10 to 10, got 'x'"),
        (dict(num_beams=0), ValueError, "beam_size must be a whole number from 1 to 10,000, got 0"),
        (
            dict(max_length=10**9),
            ValueError,
            "max_length must be .* to 1,000,000, got 10{9}",
        ),
        (dict(n_best=5), ValueError, "n_best must be from 1 to beam_size = 4, got 5"),
        (
            dict(batch_size=2.5),
            ValueError,
            "batch_size must be a whole number .*, got 2.5",
        ),
        (dict(n_best=2, split_sentences=True), ValueError, "n_best must be left out"),
        (dict(options=4), TypeError, "got 4; write beam_size=4"),
    ],
)
def test_a_wrong_option_is_one_line_before_any_text_is_read(translator, options, error, told):
    with pytest.raises(error, match=told):
        translator(iter(lambda: pytest.fail("a text was read"), None), **options)


def test_scores_and_several_translations_are_those_of_the_search(translator, tokenizer):
    ids = torch.tensor([[*tokenizer.encode(TEXTS[0]), tokenizer.eos_id]])
    best = beam_search(translator.model, ids, max_length=12, n_best=3)[0]
    texts = [tokenizer.decode(h.tokens).strip() for h in best]
    expected = [
        Translation(text, h.score, h.log_probability, h.finished, h.tokens)
        for text, h in zip(texts, best, strict=True)
    ]
    found = translator([TEXTS[0], " "], max_length=12, n_best=3, return_scores=True)
    assert found == [expected, [Translation("")]]
    assert translator(TEXTS[0], max_length=12, num_return_sequences=3) == texts
    assert translator(TEXTS[0], max_length=12, n_best=1) == texts[:1]
    assert translator([TEXTS[0]], max_length=12, return_scores=True) == expected[:1]


def test_a_sentence_in_capitals_is_translated_in_sentence_case(translator, monkeypatch):
    translate = partial(translator.translate, max_length=12, return_scores=True)
    plain = translate(["Where is the train station?", "“It is I.”", "Nein!"])
    shouted = ["WHERE IS THE TRAIN STATION?", "“IT IS I.”", "NEIN!"]
    assert translate(shouted) == [replace(each, text=each.text.upper()) for each in plain]
    as_it_is = translate(shouted, sentence_case=False)
    assert [each.score for each in as_it_is] != [each.score for each in plain]
    monkeypatch.setattr(translator.tokenizer, "decode_batch", lambda rows: ["klein" for _ in rows])
    assert translator(["HELLO!", "Hello!"], max_length=2) == ["KLEIN", "klein"]
    # The check for length sees the text that is translated: its capitals have fewer merges.
    long = "WHERE IS THE TRAIN STATION? " * 4
    translator.require_translatable(long)
    with pytest.raises(ValueError, match="more than the 80"):
        translator.require_translatable(long, sentence_case=False)
    # Abbreviations, a capital among others, and letters without case are not capitals.
    for text in ("USA", "The NATO", "日本語です", "1234 5678!"):
        assert not in_capitals(text)


def test_the_sentences_of_a_text_are_translated_one_by_one(translator):
    text = "Dr. Weber is here. NOBODY KNOWS. “Where is it?” he said."
    parts = ["Dr. Weber is here.", "NOBODY KNOWS.", "“Where is it?” he said."]
    alone = translator(parts, max_length=9, return_scores=True)
    (joined, empty, one) = translator(
        [text, " ", parts[0]], max_length=9, return_scores=True, split_sentences=True
    )
    assert joined.text == " ".join(part.text for part in alone)
    assert joined.log_probability == pytest.approx(sum(part.log_probability for part in alone))
    assert joined.tokens == [token for part in alone for token in part.tokens]
    assert (empty, one) == (Translation(""), alone[0])
    assert translator(text, max_length=9) != joined.text
    # A text may be longer than the model takes if its sentences are not.
    assert translator(f"{parts[0]} " * 30, max_length=3, split_sentences=True)
    # The card names the language, and another language has other abbreviations.
    german = "Das war am 3. Oktober. Es regnete."
    assert len(split_into_sentences(german, "de")) == 2 < len(split_into_sentences(german, "en"))
    translator.card = "---\nlanguage: [de, en]\n---\n"
    try:
        translate = partial(translator, german, max_length=9, return_scores=True)
        assert translate(split_sentences=True) == translate(split_sentences="de")
        assert translate(split_sentences=True) != translate(split_sentences="en")
    finally:
        translator.card = None


def test_a_model_or_tokenizer_of_another_library(small_transformer, tokenizer, monkeypatch):
    monkeypatch.setattr("jaxtyping.config.jaxtyping_disable", True)
    model = small_transformer(270)
    with pytest.raises(TypeError, match="model must be a TranslationModel, got Tokenizer"):
        Translator(tokenizer, model)
    with pytest.raises(TypeError, match="tokenizer must be a Tokenizer .*, got Linear"):
        Translator(model, torch.nn.Linear(1, 1))


def test_a_tokenizer_of_another_model(small_transformer, tokenizer):
    with pytest.raises(ValueError, match="tokenizer has 270 tokens, more than .* 269"):
        Translator(small_transformer(269), tokenizer)
    with pytest.raises(ValueError, match="tokenizer has eos_id 2, the model 3"):
        Translator(small_transformer(270, eos_id=3), tokenizer)


# ------------------------------------------------------------------ attention


def test_ids_of_another_tokenizer_are_refused(small_transformer, tokenizer, tmp_path):
    other = Tokenizer.train([text[::-1] for text in TEXTS * 3], 270)
    translator = Translator(small_transformer(270), tokenizer)
    translator.save_pretrained(tmp_path)
    for model in (translator.model, Transformer.from_pretrained(tmp_path)):
        Translator(model, Tokenizer.load(tmp_path / "tokenizer.json"))
        with pytest.raises(ValueError, match="tokenizer .* is not the one that the model was trai"):
            Translator(model, other)
    (tmp_path / "checksums.json").unlink()
    other.save(tmp_path / "tokenizer.json")
    with pytest.raises(ValueError, match="does not load: tokenizer .* is not the one"):
        Translator.from_pretrained(tmp_path)


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


def test_eight_threads_may_share_a_model_in_training_mode(translator):
    """Half of the calls ask for attention."""

    def answer(number):
        if number % 2:
            return [translator(TEXTS[number % 7], max_length=20)]
        maps = translator.attention("Where is it?" * (number // 2 + 1), "Wo?")
        return [maps.encoder, maps.decoder, maps.cross]

    expected = [answer(number) for number in range(16)]
    translator.model.train()
    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(answer, [*range(16)] * 4)]
    assert all(module.training for module in translator.model.modules())
    translator.model.eval()
    for parts, wanted in zip(found, expected * 4, strict=True):
        for part, right in zip(parts, wanted, strict=True):
            np.testing.assert_array_equal(part, right)


# ------------------------------------------------------------------ saving and loading


def test_what_was_saved_translates_the_same(translator, tmp_path, capsys):
    expected = translator(TEXTS, max_length=20)
    folder = translator.save_pretrained(tmp_path / "trained")
    for place in (folder, str(folder)):
        assert Translator.from_pretrained(place)(TEXTS, max_length=20) == expected
    assert capsys.readouterr().out == ""  # standard output may be a pipe
    halved = Translator.from_pretrained(translator.save_pretrained(tmp_path / "half", half=True))
    size = (folder / "model.safetensors").stat().st_size
    assert (tmp_path / "half/model.safetensors").stat().st_size < 0.7 * size
    for name, weight in halved.model.state_dict().items():
        assert torch.equal(weight, translator.model.state_dict()[name].half().float())


def test_the_device(translator, tmp_path):
    folder = translator.save_pretrained(tmp_path)
    moved = Translator.from_pretrained(folder, device="meta")
    assert moved.device.type == moved.model.output_weight.device.type == "meta"
    fresh = Translator.from_pretrained(folder)
    assert fresh.device.type == "cpu"
    assert fresh.to("meta") is fresh and fresh.device == torch.device("meta")
    with pytest.raises(ValueError, match="device must be one of this machine, got 'cuda:99'"):
        Translator.from_pretrained(folder).to("cuda:99")


def test_not_fast_is_plain_whatever_was_before(small_transformer, tokenizer, tmp_path):
    model = small_transformer(tokenizer.vocab_size)
    Translator(model, tokenizer)
    assert is_enabled(model)
    plain = Translator(model, tokenizer, fast=False)
    assert not is_enabled(model)
    folder = plain.save_pretrained(tmp_path)
    assert not is_enabled(Translator.from_pretrained(folder, fast=False).model)
    assert is_enabled(Translator.from_pretrained(folder).model)


def test_a_model_on_the_hub_is_all_that_a_download_needs(translator, hub, tmp_path):
    (tmp_path / "model").mkdir()
    translator.save_pretrained(tmp_path / "model")
    (tmp_path / "model/README.md").write_text('x\nTranslator.from_pretrained("here")\n')
    loaded = Translator.from_pretrained(tmp_path / "model")
    address = loaded.push_to_hub("someone/english-german", private=True)
    assert address == "https://huggingface.co/someone/english-german"
    uploaded = hub / "someone/english-german"
    model = ["README.md", "checksums.json", "config.json", "model.safetensors"]
    tokenizer = ["tokenizer.json", "tokenizer_config.json"]
    assert sorted(os.listdir(uploaded)) == model + tokenizer
    assert (hub / "someone/english-german.private").read_text() == "True"
    back = Translator.from_pretrained("someone/english-german")
    assert back(TEXTS, max_length=20) == translator(TEXTS, max_length=20)
    # The example in the card loads what was uploaded; the folder keeps its own.
    assert back.card == 'x\nTranslator.from_pretrained("someone/english-german")\n'
    assert "here" in loaded.card
    # Files of another kind of tokenizer do not stay, others do; a branch is created.
    for name in ("source.spm", "notes.txt"):
        (uploaded / name).touch()
    loaded.push_to_hub("someone/english-german", revision="next")
    assert sorted(os.listdir(uploaded)) == sorted([*model, *tokenizer, "notes.txt"])
    assert (hub / "someone/english-german.branch").read_text() == "next"
    # A model without a card gets one.
    translator.push_to_hub("someone/other")
    assert ModelCard.load(hub / "someone/other/README.md").data.pipeline_tag == "translation"


def test_an_upload_that_fails_is_one_line(translator, monkeypatch):
    def refuse(self, repo_id, **options):
        raise RuntimeError("no\nnetwork")  # like httpx's ConnectError, no OSError

    monkeypatch.setattr(HfApi, "create_repo", refuse)
    with pytest.raises(OSError, match="cannot upload to 'someone/x' .*: no network"):
        translator.push_to_hub("someone/x")
    monkeypatch.undo()
    with pytest.raises(ValueError, match="repo_id must be 'owner/name', got 'a/b/c'"):
        translator.push_to_hub("a/b/c", token="none")
