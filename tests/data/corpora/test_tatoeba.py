import pytest

from transformer.data.corpora import load_corpus
from transformer.data.corpora.tatoeba import read_pairs


def test_splits_are_the_same_on_every_machine(tatoeba):
    """That no sentence is in two of them, and none is lost, holds for any text: test_splits.py."""
    sizes = dict(train=155_813, validation=2_004, test=2_000, challenge=17_565)
    assert {name: len(split) for name, split in tatoeba.splits.items()} == sizes
    # Shipped weights were trained on this split: another one would leak its test set to them.
    expected = "db76618cbeb9dad54abbd1706ed17cb5dfd3446ab902503ac67d6334ac39c672"
    assert tatoeba.checksum == expected


def test_french_from_a_data_directory(write_lines, tmp_path):
    columns = [f"English {i}.\tFrançais {i}.\tCC-BY someone" for i in range(4500)]
    write_lines("data/tatoeba-en-fr/fra.txt", columns)  # not compressed: as it is unpacked
    test_name = "data/tatoeba-en-fr/tatoeba-test-v2021-08-07.eng-fra"
    write_lines(f"{test_name}.eng.gz", ["English 7.", "Something else."])
    write_lines(f"{test_name}.fra.gz", ["Autre chose.", "Français 9."])
    corpus = load_corpus("tatoeba-en-fr", tmp_path / "data")
    train = set(corpus.train) | set(corpus.validation)
    assert ("English 8.", "Français 8.") in train | set(corpus.test)
    assert not {("English 7.", "Français 7."), ("English 9.", "Français 9.")} & train
    assert sum(map(len, corpus.splits.values())) in range(4500, 4503)


def test_line_without_a_tab(write_lines):
    with pytest.raises(ValueError, match="line 2: expected two columns"):
        read_pairs(write_lines("x.txt", ["a\tb", "c"]))
