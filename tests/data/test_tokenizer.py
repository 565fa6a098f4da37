import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transformer.data.tokenizer import Tokenizer

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


@given(st.lists(any_text(), max_size=5))
def test_batch_equals_one_by_one(tokenizer, texts):
    batch = tokenizer.encode_batch(texts)
    assert batch == [tokenizer.encode(text) for text in texts]
    assert tokenizer.decode_batch(batch) == texts


def test_half_a_surrogate_pair_is_an_error(tokenizer):
    with pytest.raises(ValueError, match="valid Unicode"):
        tokenizer.encode("a\ud800")


def test_special_tokens(tokenizer):
    assert (tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id) == (0, 1, 2)
    ids = tokenizer.encode("Wo ist?")
    assert tokenizer.decode([1, *ids, 2, 0, 0]) == "Wo ist?"
    assert tokenizer.tokens([0, 1, 2]) == ["<pad>", "<bos>", "<eos>"]


def test_special_tokens_in_the_training_text_are_only_text():
    tokenizer = Tokenizer.train(["<pad> a<eos>b <bos>"] * 500, 264)
    assert not {0, 1, 2} & set(tokenizer.encode("<pad> a<eos>b <bos>"))


def test_vocabulary_has_exactly_the_size_asked_for(tokenizer):
    assert tokenizer.vocab_size == 300
    # Merges were learned: a frequent word is one token, with its blank.
    assert tokenizer.tokens(tokenizer.encode("der Bahnhof")) == ["d", "er", "▁Bahnhof"]


def test_vocabulary_that_the_text_does_not_support():
    with pytest.raises(ValueError, match=r"vocab_size 5000 is larger .* gives \d+ tokens"):
        Tokenizer.train(TEXTS, 5000)
    with pytest.raises(ValueError, match="at least 259"):
        Tokenizer.train(TEXTS, 258)
    assert Tokenizer.train([], 259).decode([]) == ""


def test_one_string_is_not_taken_for_sentences():
    with pytest.raises(TypeError, match="iterable of sentences"):
        Tokenizer.train("abc", 300)


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


def test_failed_save_leaves_the_old_file_and_no_other(tokenizer, tmp_path, monkeypatch):
    path = tmp_path / "tokenizer.json"
    path.write_text("the old file")

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full_disk)
    with pytest.raises(OSError, match="No space"):
        tokenizer.save(path)
    assert [p.read_text() for p in tmp_path.iterdir()] == ["the old file"]


@pytest.mark.parametrize("damage", ["cut", "not json", "binary", "other tokenizer", "decoder"])
def test_damaged_file(tokenizer, tmp_path, damage):
    path = tmp_path / "tokenizer.json"
    tokenizer.save(path)
    text = path.read_text(encoding="utf-8")
    if damage == "cut":
        path.write_text(text[: len(text) // 2], encoding="utf-8")
    elif damage == "not json":
        path.write_text("Hello.")
    elif damage == "binary":
        path.write_bytes(b"\xff\xfe\x00")
    elif damage == "other tokenizer":
        path.write_text(text.replace("<bos>", "<cls>"), encoding="utf-8")
    else:
        start = text.index('"decoder"')
        head, tail = text[:start], text[start:].replace('"ByteLevel"', '"Fuse"', 1)
        path.write_text(head + tail, encoding="utf-8")
    with pytest.raises(ValueError, match="tokenizer.json is not a readable tokenizer file") as info:
        Tokenizer.load(path)
    assert "\n" not in str(info.value)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="no tokenizer file"):
        Tokenizer.load(tmp_path / "tokenizer.json")


@given(any_text())
def test_labels_spell_the_text(tokenizer, text):
    ids = tokenizer.encode(text)
    labels = tokenizer.tokens(ids)
    assert len(labels) == len(ids)
    if text.isascii():
        assert "".join(labels) == text.replace(" ", "▁")


def test_label_of_a_part_of_a_character(tokenizer):
    assert tokenizer.tokens(tokenizer.encode("日")) == ["<0xE6>", "<0x97>", "<0xA5>"]


@pytest.mark.parametrize("token_id", [-1, 300])
def test_label_of_an_unknown_id(tokenizer, token_id):
    with pytest.raises(ValueError, match=r"ids must be in \[0, 300\)"):
        tokenizer.tokens([token_id])


def test_ids_outside_the_vocabulary_decode_to_nothing(tokenizer):
    # A model's vocabulary may be padded to a round size.
    assert tokenizer.decode([*tokenizer.encode("Wo"), 300, 100_000]) == "Wo"
