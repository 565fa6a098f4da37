import os
import re
from hashlib import sha256

import pytest

from transformer.data.corpora import load_corpus, multi30k
from transformer.data.corpora.download import DownloadError

SIZES = {"train": 5, "validation": 2, "test": 3, "test2017": 2, "mscoco": 1}


@pytest.fixture
def tiny_files(write_lines, monkeypatch):
    """Small generated files instead of the corpus, with their checksums."""
    sums = {}
    for split, stem in multi30k.SPLITS.items():
        for language in ("en", "de", "fr"):
            lines = [f"{split} {language} {i}" for i in range(SIZES[split])]
            path = write_lines(f"data/multi30k-task1/{stem}.{language}.gz", lines)
            sums[path.name] = sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(multi30k, "SHA256", sums)
    return path.parents[1]


def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a download was tried")

    monkeypatch.setattr(multi30k, "download", refuse)


@pytest.mark.parametrize("pair", ["en-de", "en-fr", "de-en"])
def test_splits_from_a_data_directory(tiny_files, monkeypatch, pair):
    no_network(monkeypatch)
    corpus = load_corpus(f"multi30k-{pair}", tiny_files)
    source, target = pair.split("-")
    assert {name: len(split) for name, split in corpus.splits.items()} == SIZES
    assert list(corpus.test)[2] == (f"test {source} 2", f"test {target} 2")


def test_other_file_under_the_name_is_refused(tiny_files, write_lines):
    write_lines("data/multi30k-task1/val.de.gz", ["another", "text"])
    with pytest.raises(ValueError, match="val.de.gz is not Multi30K's: SHA-256"):
        load_corpus("multi30k-en-de", tiny_files)


def test_download_goes_to_the_cache_and_is_not_repeated(tiny_files, monkeypatch):
    asked = []

    def copy(urls, path, expected):
        asked.append(path.name)
        assert len(urls) >= 2 and all(url.endswith("/" + path.name) for url in urls)
        assert expected == multi30k.SHA256[path.name]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((tiny_files / "multi30k-task1" / path.name).read_bytes())

    monkeypatch.setattr(multi30k, "download", copy)
    first = load_corpus("multi30k-en-fr")
    assert len(asked) == 10
    no_network(monkeypatch)
    assert load_corpus("multi30k-en-fr").checksum == first.checksum
    # A cached file that was damaged since is fetched again.
    asked.clear()
    damaged = os.path.join(
        os.environ["XDG_CACHE_HOME"], "transformer-book/multi30k-task1/val.fr.gz"
    )
    with open(damaged, "ab") as file:
        file.write(b"x")
    monkeypatch.setattr(multi30k, "download", copy)
    assert load_corpus("multi30k-en-fr").checksum == first.checksum
    assert asked == ["val.fr.gz"]


def test_without_a_network_one_line_says_what_to_do(monkeypatch):
    # Port 9 of this machine: refused at once, and nothing leaves the machine.
    monkeypatch.setattr(multi30k, "SOURCES", ("http://127.0.0.1:9/a/", "http://127.0.0.1:9/b/"))
    with pytest.raises(DownloadError) as info:
        load_corpus("multi30k-en-de")
    assert re.fullmatch(
        r"cannot download train\.en\.gz: .*refused.*; .*data_dir.*", str(info.value)
    )
    assert "TRANSFORMER_DATA_DIR" in str(info.value)
