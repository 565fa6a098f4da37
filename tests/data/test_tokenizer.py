import json
import random

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from transformer.data.model_tokenizers import load_tokenizers
from transformer.data.tokenizer import Tokenizer
from transformer.inference.translator import Translator
from transformer.saving.locate import locate

TEXTS = [
    "The train station is over there.",
    "Der Bahnhof ist dort drüben.",
    "Where is the train station?",
    "Wo ist der Bahnhof?",
] * 3


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(TEXTS, 300)


def any_text():
    return st.text(st.characters(codec="utf-8"))


@given(any_text())
@example("  two blanks before and one after ")
@example("<pad><bos><eos> <eos>")
@example("\u2028\x00\x85\r\n\t \u202f")
@example("e\u0301 is not é, ﬁ is not fi, Straße İ")
@example("👩‍👩‍👧 日本語 नमस्ते")
@example("")
def test_round_trip_is_lossless(tokenizer, text):
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert all(3 <= i < tokenizer.vocab_size for i in ids)
    assert tokenizer.decode([1, *ids, 2, 0, 0]) == text


@given(st.lists(any_text(), max_size=5))
def test_batch_equals_one_by_one(tokenizer, texts):
    batch = tokenizer.encode_batch(texts)
    assert batch == [tokenizer.encode(text) for text in texts]
    assert tokenizer.decode_batch(batch) == texts


def test_invalid_input(tokenizer, tmp_path):
    with pytest.raises(ValueError, match="valid Unicode"):
        tokenizer.encode("a\ud800")
    with pytest.raises(ValueError, match="ids must be in"):
        tokenizer.tokens([300])
    with pytest.raises(FileNotFoundError, match="no tokenizer file"):
        Tokenizer.load(tmp_path / "tokenizer.json")


def test_vocabulary_has_exactly_the_size_asked_for(tokenizer):
    assert tokenizer.vocab_size == 300
    # Merges were learned: a frequent word is one token, with its blank.
    assert tokenizer.tokens(tokenizer.encode("der Bahnhof")) == ["d", "er", "▁Bahnhof"]


def test_vocabulary_that_the_text_does_not_support():
    with pytest.raises(ValueError, match=r"vocab_size 5000 is larger .* gives \d+ tokens"):
        Tokenizer.train(TEXTS, 5000)
    with pytest.raises(ValueError, match="vocab_size must be .* from 259 to 1,000,000, got 258"):
        Tokenizer.train(TEXTS, 258)
    assert Tokenizer.train([], 259).decode([]) == ""


def test_training_is_deterministic_and_ignores_the_order_of_the_text(tatoeba, tmp_path):
    texts = tatoeba.validation.source + tatoeba.validation.target
    files = []
    for run in range(3):
        random.Random(run).shuffle(texts)
        path = tmp_path / f"{run}.json"
        Tokenizer.train(iter(texts), 2000).save(path)
        files.append(path.read_bytes())
    assert files[0] == files[1] == files[2]


def test_save_and_load(tokenizer, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text("an older file")
    tokenizer.save(path)
    loaded = Tokenizer.load(str(path))
    text = " Wo ist <pad> der Bahnhof? 👋 "
    assert loaded.encode(text) == tokenizer.encode(text)
    assert loaded.decode(loaded.encode(text)) == text
    assert loaded.vocab_size == tokenizer.vocab_size
    assert [p.name for p in tmp_path.iterdir()] == ["tokenizer.json"]


@pytest.mark.parametrize("damage", ["cut", "binary", "deep", "other tokenizer"])
def test_damaged_file(tokenizer, tmp_path, damage):
    path = tmp_path / "tokenizer.json"
    content = tokenizer.to_json().encode()
    path.write_bytes(
        {
            "cut": content[: len(content) // 2],
            "binary": b"\xff\xfe\x00",
            "deep": b"[" * 200_000,
            "other tokenizer": content.replace(b"<bos>", b"<cls>"),
        }[damage]
    )
    with pytest.raises(ValueError, match="tokenizer.json is not a readable tokenizer file") as info:
        Tokenizer.load(path)
    assert "\n" not in str(info.value) and len(str(info.value)) < 600


@pytest.mark.parametrize("place, value", [
    # These make the library panic, ...
    (("model", "continuing_subword_prefix"), "ByteLevel"), (("model", "vocab"), {}),
    # ... these drop or change text, or cut it at random.
    (("model", "end_of_word_suffix"), "x"), (("pre_tokenizer", "add_prefix_space"), True),
    (("normalizer",), {"type": "Lowercase"}), (("decoder",), {"type": "Fuse"}),
    (("post_processor",), {"type": "ByteLevel"}), (("model", "vocab", "a"), 10**6),
    (("added_tokens",), []),
])  # fmt: skip
def test_options_that_training_does_not_use_are_refused(tokenizer, tmp_path, place, value, capfd):
    content = inner = json.loads(tokenizer.to_json())
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match="not a readable tokenizer file"):
        Tokenizer.load(path)
    assert capfd.readouterr().err == ""  # no backtrace of a panic


def test_labels_are_pieces_of_the_text_or_bytes(tokenizer):
    assert tokenizer.tokens([0, 1, 2]) == ["<pad>", "<bos>", "<eos>"]
    assert "".join(tokenizer.tokens(tokenizer.encode("Is it? No."))) == "Is▁it?▁No."
    assert tokenizer.tokens(tokenizer.encode("日")) == ["<0xE6>", "<0x97>", "<0xA5>"]


def test_files_of_earlier_versions_load(tokenizer, tmp_path):
    """They have no post-processor, and become equal to a new file."""
    older = json.loads(tokenizer.to_json()) | {"post_processor": None}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(older), encoding="utf-8")
    assert Tokenizer.load(path).to_json() == tokenizer.to_json()


def odd_texts(pairs):
    """1,000 texts: sentences of both languages, with special tokens, emoji, control characters."""
    odd = ["<eos>", "<pad>", " a<bos>b ", "🙂", "👩‍👩‍👧", "\x00\x07", "\t\r\n", " , .", "İ e\u0301"]
    texts = [*pairs.source[:500], *pairs.target[:500]]
    return [f"{text}{odd[i % len(odd)]}" if i % 3 else text for i, text in enumerate(texts)]


def test_hugging_face_gives_our_ids_and_an_end(tokenizer, tatoeba, tmp_path):
    transformers = pytest.importorskip("transformers", reason="needs it: requirements-test.txt")
    names = tokenizer.save_pretrained(tmp_path / "new", model_max_length=1024)
    assert sorted(names) == sorted(path.name for path in (tmp_path / "new").iterdir())
    texts = odd_texts(tatoeba.test)
    for kind in (transformers.AutoTokenizer, transformers.PreTrainedTokenizerFast):
        theirs = kind.from_pretrained(tmp_path / "new")
        batch = theirs(texts, padding=True)
        assert {*batch} == {"input_ids", "attention_mask"}  # what models take
        rows = [ids[: sum(m)] for ids, m in zip(batch.input_ids, batch.attention_mask, strict=True)]
        assert rows == [[*tokenizer.encode(text), tokenizer.eos_id] for text in texts]
        assert {
            i for ids, row in zip(batch.input_ids, rows, strict=True) for i in ids[len(row) :]
        } == {0}
        assert theirs.batch_decode(batch.input_ids, skip_special_tokens=True) == texts
        assert (len(theirs), theirs.model_max_length) == (300, 1024)


@pytest.mark.parametrize("folder", ["shipped", "saved"])
def test_from_pretrained(tmp_path, folder):
    name = "tatoeba-en-de"
    if folder == "saved":
        name = Translator.from_pretrained(name).save_pretrained(tmp_path / "new")
    loaded = Tokenizer.from_pretrained(name)
    assert len(loaded) == 8000
    source, target = load_tokenizers(locate(name).folder)
    assert source is target and source.to_json() == loaded.to_json()


def test_ids_outside_the_vocabulary_decode_to_nothing(tokenizer):
    # The vocabulary of a model may be padded to a round size.
    assert tokenizer.decode([*tokenizer.encode("Wo"), 300, 2**40]) == "Wo"
    # -100 marks ignored labels in other programs.
    assert tokenizer.decode([-100, *tokenizer.encode("Wo"), -1]) == "Wo"


def test_tensors_are_decoded(tokenizer, monkeypatch):
    monkeypatch.setattr("jaxtyping.config.jaxtyping_disable", True)
    ids = torch.tensor(tokenizer.encode("Wo"))
    assert tokenizer.decode(ids) == "".join(tokenizer.tokens(ids)) == "Wo"
    assert tokenizer.decode_batch(torch.stack([ids, ids])) == ["Wo", "Wo"]
    with pytest.raises(TypeError):
        tokenizer.decode([1.5])
