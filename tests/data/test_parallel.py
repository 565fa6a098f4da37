import gzip
import lzma
import os
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transformer.data import lines as lines_module
from transformer.data.lines import read_lines, unpack_gzip
from transformer.data.parallel import (
    Corpus,
    Split,
    load_parallel_files,
    stream_parallel_files,
)


def test_checksum_depends_on_text_split_and_order():
    def checksum(**splits):
        return Corpus("n", "en", "de", "", splits).checksum

    pair, other = Split(["a"], ["x"]), Split(["b"], ["y"])
    both, swapped = Split(["a", "b"], ["x", "y"]), Split(["b", "a"], ["y", "x"])
    sums = {
        checksum(train=pair, test=other),
        checksum(train=other, test=pair),
        checksum(train=both),
        checksum(train=swapped),
        checksum(train=both.swapped()),
    }
    assert len(sums) == 5
    assert checksum(train=pair, test=other) in sums


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r"))),
    end=st.sampled_from(["\n", "\r\n"]),
    end_at_last=st.booleans(),
)
def test_any_lines_come_back_one_for_one(lines, end, end_at_last, tmp_path):
    path, lines = tmp_path / "text", ["first", *lines, "last"]
    text = end.join(lines) + end * end_at_last
    path.write_bytes(text.encode("utf-8-sig"))  # with a byte order mark
    assert read_lines(path) == lines


def test_unreadable_files(tmp_path):
    path = tmp_path / "text.en"
    with pytest.raises(FileNotFoundError, match="text.en"):
        read_lines(path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="is empty"):
        read_lines(path)
    path.write_bytes("gut\nschön\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"line 2 holds the byte 0xf6 \(byte 7 "):
        read_lines(path)


@pytest.mark.parametrize("damage", [lambda d: d[:-6], lambda d: b"text", lambda d: d[:20] + d[25:]])
@pytest.mark.parametrize(
    ("compress", "name"), [(gzip.compress, "a gzip"), (lzma.compress, "an xz")]
)
def test_a_damaged_file(tmp_path, damage, compress, name):
    path = tmp_path / ("text.gz" if name == "a gzip" else "text.xz")
    path.write_bytes(compress(b"one two\n"))
    assert read_lines(path) == ["one two"]
    path.write_bytes(damage(compress(b"one two three four\n" * 9)))
    with pytest.raises(ValueError, match=f"damaged or not {name} file"):
        read_lines(path)


def test_a_gzip_bomb_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch):
    bomb = gzip.compress(bytes(30_000_000))
    path = tmp_path / "text.gz"
    path.write_bytes(bomb)
    assert len(unpack_gzip(bomb, "it")) == 30_000_000  # allowed for any file
    monkeypatch.setattr(lines_module, "ALWAYS_ALLOWED", 1 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"text\.gz has .* unpacks to more than"):
            read_lines(path)
        assert tracemalloc.get_traced_memory()[1] < 15_000_000
    finally:
        tracemalloc.stop()


def test_unequal_files(write_lines):
    with pytest.raises(ValueError, match=r"a\.en has 2, .*a\.de has 1"):
        load_parallel_files(write_lines("a.en", ["one", "two"]), write_lines("a.de", ["eins"]))


def test_blank_and_overlong_lines_are_left_out_in_pairs_with_one_notice(write_lines):
    source = write_lines("a.en", ["one", " \t", "two", "w " * 10_000, "three", "four"])
    target = write_lines("a.de", ["eins", "leer", "", "lang", "drei " * 1001, "vier " * 1000])
    with pytest.warns(UserWarning) as notices:
        split = load_parallel_files(source, target)
    assert split.source == ["one", "four"] and split.target[0] == "eins"
    (notice,) = notices
    assert "2 with a blank side and 2 with more than 1000 words, of 6 pairs" in str(notice.message)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize("make", [os.mkdir, getattr(os, "mkfifo", None)])
def test_a_folder_or_a_pipe_is_refused_at_once(tmp_path, make):
    make(tmp_path / "text")
    for read in (load_parallel_files, stream_parallel_files):
        with pytest.raises(ValueError, match="text must be a regular file, not a folder or a pipe"):
            read(tmp_path / "text", tmp_path / "text")
