import gzip
import warnings

import pytest

from transformer.data.lines import read_lines
from transformer.data.parallel import Corpus, Split, load_parallel_files


def test_split_iterates_pairs_and_must_be_aligned():
    split = Split(["a", "b"], ["x", "y"])
    assert list(split) == [("a", "x"), ("b", "y")] and len(split) == 2
    assert list(split.swapped()) == [("x", "a"), ("y", "b")]
    with pytest.raises(ValueError, match="2 source and 1 target"):
        Split(["a", "b"], ["x"])


def test_repr_does_not_print_the_text():
    split = Split(["secret"], ["x"])
    for thing in (split, Corpus("n", "en", "de", "", {"train": split})):
        assert "secret" not in repr(thing) and "1" in repr(thing)


def test_corpus_attributes_and_missing_split():
    corpus = Corpus("n", "en", "de", "", {"train": Split(["a"], ["x"])})
    assert corpus.train.source == ["a"]
    with pytest.raises(ValueError, match="n has no test split; it has train"):
        _ = corpus.test


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


@pytest.mark.parametrize("name", ["text.en", "text.en.gz"])
def test_only_line_feeds_end_lines(write_lines, name):
    lines = ["a\u2028b", "c\x85d", "e\x0bf", "  blanks stay  ", "", "ä"]
    assert read_lines(write_lines(name, lines)) == lines


def test_windows_line_ends_and_byte_order_mark(tmp_path):
    path = tmp_path / "windows.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    assert read_lines(path) == ["one", "two"]


def test_last_line_without_end(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"one\ntwo")
    assert read_lines(path) == ["one", "two"]


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
def test_damaged_gzip(tmp_path, damage):
    path = tmp_path / "text.gz"
    path.write_bytes(damage(gzip.compress(b"one two three four\n" * 9)))
    with pytest.raises(ValueError, match="damaged or not a gzip file"):
        read_lines(path)


def test_good_files_load_without_a_warning(write_lines):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        split = load_parallel_files(
            write_lines("a.en", ["one", "two"]), write_lines("a.de.gz", ["eins", "zwei"])
        )
    assert list(split) == [("one", "eins"), ("two", "zwei")]


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


def test_max_words_is_an_option(write_lines):
    source = write_lines("a.en", ["one two three", "one"])
    target = write_lines("a.de", ["eins", "eins"])
    with pytest.warns(UserWarning, match="more than 2 words"):
        assert len(load_parallel_files(source, target, max_words=2)) == 1
    assert len(load_parallel_files(source, target, max_words=3)) == 2
    assert len(load_parallel_files(source, target, max_words=None)) == 2
    with pytest.raises(ValueError, match="max_words must be at least 1"):
        load_parallel_files(source, target, max_words=0)


def test_no_pair_left(write_lines):
    with pytest.raises(ValueError, match="no pair is left"):
        load_parallel_files(write_lines("a.en", ["", "b"]), write_lines("a.de", ["x", " "]))
