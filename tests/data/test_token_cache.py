"""A text larger than the memory is read in chunks, encoded once, then memory-mapped."""

import os

import numpy as np
import pytest

from transformer.data import batching
from transformer.data.batching import TokenBatches, encode_pairs
from transformer.data.parallel import (
    load_parallel_files,
    stream_parallel_files,
)
from transformer.data.token_cache import cached_pairs, cached_tokenizer
from transformer.data.tokenizer import Tokenizer


@pytest.fixture
def files(write_lines):
    """Two files whose lines differ in length."""
    lines = [f"{'very ' * (i % 5)}small cat {i}" for i in range(25)]
    return write_lines("a.en", lines), write_lines("a.de.gz", [line.upper() for line in lines])


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(["very small cat", "VERY SMALL CAT"] * 3, 270)


@pytest.fixture
def encodings(monkeypatch):
    """The sizes of all encoded batches of text."""
    calls, encode = [], Tokenizer.encode_batch

    def counting(self, texts):
        calls.append(len(texts))
        return encode(self, texts)

    monkeypatch.setattr(Tokenizer, "encode_batch", counting)
    return calls


def assert_same_pairs(mine, theirs):
    for a, b in ((mine.source, theirs.source), (mine.target, theirs.target)):
        assert np.array_equal(a.ids, b.ids) and np.array_equal(a.offsets, b.offsets)
    assert mine.checksum == theirs.checksum
    assert (mine.pad_id, mine.bos_id) == (theirs.pad_id, theirs.bos_id)
    budget = 3 * int(max(mine.source.lengths().max(), mine.target.lengths().max()))
    plans = [TokenBatches(pairs, budget, seed=1).epoch(2) for pairs in (mine, theirs)]
    assert [rows.tolist() for rows in plans[0]] == [rows.tolist() for rows in plans[1]]


@pytest.mark.parametrize("swapped", [False, True])
def test_streamed_and_cached_is_what_is_read_into_memory(
    files, tokenizer, tmp_path, monkeypatch, swapped
):
    text, split = stream_parallel_files(*files), load_parallel_files(*files)
    assert list(text) == list(text) == list(split) and len(text) == len(split)
    if swapped:
        text, split = text.swapped(), split.swapped()
        assert list(text) == list(split)
    assert (text.source, text.target) == (split.source, split.target)
    assert list(text.first(3)) == list(split.first(3)) == list(split)[:3]
    monkeypatch.setattr(batching, "_CHUNK", 4)
    for _ in range(2):  # made, then found
        assert_same_pairs(cached_pairs(tokenizer, text, tmp_path), encode_pairs(tokenizer, split))


def test_the_second_time_nothing_is_encoded_and_nothing_learned(
    files, tokenizer, tmp_path, encodings, monkeypatch
):
    first = cached_pairs(tokenizer, stream_parallel_files(*files), tmp_path)
    learned = cached_tokenizer(stream_parallel_files(*files), 270, tmp_path)
    assert encodings == [25, 25]
    monkeypatch.setattr(Tokenizer, "train", None)
    again = cached_pairs(tokenizer, stream_parallel_files(*files), tmp_path)
    assert cached_tokenizer(stream_parallel_files(*files), 270, tmp_path).to_json() == (
        learned.to_json()
    )
    assert encodings == [25, 25]
    assert_same_pairs(first, again)


def test_another_text_or_tokenizer_is_encoded_again(files, tokenizer, tmp_path, encodings):
    def encodes(text):
        found = len(encodings)
        cached_pairs(tokenizer, text, tmp_path)
        return len(encodings) > found

    text = stream_parallel_files(*files)
    assert encodes(text) and not encodes(text)
    assert encodes(text.swapped()) and encodes(text.first(7)) and encodes(text.first(8))
    assert encodes(stream_parallel_files(*files, max_words=30))
    before = os.stat(files[0])
    files[0].write_text(files[0].read_text().replace("cat", "cow"))  # of the same size
    os.utime(files[0], ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert encodes(stream_parallel_files(*files))
    tokenizer = Tokenizer.train(["small cow", "SMALL COW"] * 3, 265)
    assert encodes(text)
    assert [cached_tokenizer(text, n, tmp_path).vocab_size for n in (262, 263)] == [262, 263]


def test_damaged_files_are_replaced(files, tokenizer, tmp_path):
    """A folder without a header is what a killed process leaves."""
    text = stream_parallel_files(*files)
    whole = encode_pairs(tokenizer, load_parallel_files(*files))
    cached_pairs(tokenizer, text, tmp_path)
    (folder,) = (path for path in tmp_path.iterdir() if (path / "header.json").exists())
    for name in sorted(path.name for path in folder.iterdir()):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])
        assert_same_pairs(cached_pairs(tokenizer, text, tmp_path), whole)
        (folder / name).unlink()
        assert_same_pairs(cached_pairs(tokenizer, text, tmp_path), whole)


def test_a_full_disk_gives_a_one_line_error_and_leaves_nothing(
    files, tokenizer, tmp_path, limit_file_size
):
    text, cache = stream_parallel_files(*files), tmp_path / "cache"
    whole = encode_pairs(tokenizer, load_parallel_files(*files))
    for most in (0, 300):
        full = pytest.raises(OSError, match="cannot write .*; make room")
        with limit_file_size(most), full as caught:
            cached_pairs(tokenizer, text, cache)
        assert "\n" not in str(caught.value)
        assert all(path.name.endswith(".lock") for path in cache.iterdir()), most
    assert_same_pairs(cached_pairs(tokenizer, text, cache), whole)
