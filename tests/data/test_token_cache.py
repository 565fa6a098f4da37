"""A text larger than the memory is read in chunks, encoded once, then memory-mapped."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

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

ROOT = Path(__file__).parents[2]


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


def test_errors_are_those_of_files_read_into_memory_and_leave_nothing(
    write_lines, tokenizer, tmp_path, monkeypatch
):
    text = stream_parallel_files(write_lines("a.en", ["1", "2"]), write_lines("a.de", ["eins"]))
    with pytest.raises(ValueError, match=r"a\.en has 2, .*a\.de has 1"):
        cached_pairs(tokenizer, text, tmp_path / "cache")
    latin = tmp_path / "latin"
    latin.write_bytes(b"one\n" * 50 + "schön\n".encode("latin-1"))
    monkeypatch.setattr("transformer.data.lines._BLOCK", 64)  # so that it is in the fourth
    with pytest.raises(ValueError, match=r"line 51 holds the byte 0xf6 \(byte 203 of the file"):
        cached_pairs(tokenizer, stream_parallel_files(latin, latin), tmp_path / "cache")
    assert not [p for p in (tmp_path / "cache").iterdir() if not p.name.endswith(".lock")]


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


# ---------------------------------------------------------------------- in processes of their own

SCRIPT = """
import sys, time
from pathlib import Path
from transformer.data import batching, token_cache
from transformer.data.parallel import stream_parallel_files
from transformer.data.tokenizer import Tokenizer

def peak():
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024

batching._CHUNK = 1000
Tokenizer.encode_batch = lambda self, texts: [[7] * 200 for _ in texts]
tokenizer, folder = Tokenizer.load(sys.argv[1]), Path(sys.argv[2])
if sys.argv[3] == "kill":
    chunks = token_cache.encoded_chunks
    def slow(*arguments):
        for i, chunk in enumerate(chunks(*arguments)):
            yield chunk
            (folder / "begun").touch()
            time.sleep(60)
    token_cache.encoded_chunks = slow
for count in map(int, sys.argv[4:]):
    text = stream_parallel_files(folder / "text", folder / "text").first(count)
    token_cache.cached_pairs(tokenizer, text, folder / "cache")
    print(peak(), flush=True)
"""


@pytest.fixture
def encode_in_a_process(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "tokenizer.json")
    (tmp_path / "text").write_text("".join(f"small cat {i}\n" for i in range(60_000)))

    def start(mode: str, *counts: int) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-c", SCRIPT, tmp_path / "tokenizer.json", tmp_path, mode]
            + [str(count) for count in counts],
            env=os.environ | dict(PYTHONPATH=str(ROOT), RAYON_NUM_THREADS="1"),
            stdout=subprocess.PIPE,
            text=True,
        )

    return start


def test_unfinished_files_of_a_killed_process_are_not_used(
    encode_in_a_process, tokenizer, tmp_path, monkeypatch
):
    process = encode_in_a_process("kill", 2_500)
    while not (tmp_path / "begun").exists():
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    (unfinished,) = (path for path in (tmp_path / "cache").iterdir() if path.is_dir())
    assert (unfinished / "source.ids").stat().st_size > 0
    monkeypatch.setattr(Tokenizer, "encode_batch", lambda self, texts: [[7] * 200 for _ in texts])
    text = stream_parallel_files(tmp_path / "text", tmp_path / "text").first(2_500)
    pairs = cached_pairs(tokenizer, text, tmp_path / "cache")  # and no lock is left behind
    assert_same_pairs(pairs, encode_pairs(tokenizer, text))
    header = next((tmp_path / "cache").glob("*/header.json"))
    assert json.loads(header.read_text())["pairs"] == 2_500
