import sys
import types
from unittest.mock import Mock

import pytest

from tests.data.fake_datasets import Rows
from transformer.data.corpora import load_corpus
from transformer.data.corpora.download import DownloadError


@pytest.fixture
def fake_datasets(monkeypatch):
    calls = []

    def load_dataset(path, config, revision):
        calls.append((path, config, revision))
        language = config.removesuffix("-en")
        return {
            name: Rows({"en": f"{name} {i}", language: f"{name} {language} {i}"} for i in range(n))
            for name, n in (("train", 12_345), ("validation", 30), ("test", 20))
        }

    module = types.ModuleType("datasets")
    module.load_dataset = load_dataset
    monkeypatch.setitem(sys.modules, "datasets", module)
    return module, calls


@pytest.mark.parametrize(("name", "config"), [("wmt14-en-de", "de-en"), ("wmt14-fr-en", "fr-en")])
def test_through_datasets(fake_datasets, name, config):
    corpus = load_corpus(name)
    ((path, asked, revision),) = fake_datasets[1]
    assert (path, asked) == ("wmt/wmt14", config) and len(revision) == 40
    assert {k: len(v) for k, v in corpus.splits.items()} == {
        "train": 12_345, "validation": 30, "test": 20
    }  # fmt: skip
    last = ("train 12344", f"train {config[:2]} 12344")
    assert list(corpus.train)[-1] == (last if name.startswith("wmt14-en") else last[::-1])


def test_without_a_network(fake_datasets):
    fake_datasets[0].load_dataset = Mock(side_effect=ConnectionError("Couldn't reach\nthe Hub"))
    with pytest.raises(DownloadError, match="wmt14-en-de: Couldn't reach the Hub; .*data_dir"):
        load_corpus("wmt14-en-de")


def test_own_files_come_before_datasets(fake_datasets, write_lines, tmp_path):
    for stem in ("train", "newstest2013", "newstest2014"):
        write_lines(f"wmt14-en-de/{stem}.en-de.en", [f"{stem} en"])
        write_lines(f"wmt14-en-de/{stem}.en-de.de.gz", [f"{stem} de"])
    corpus = load_corpus("wmt14-en-de", tmp_path)
    assert not fake_datasets[1]
    assert list(corpus.train) == [("train en", "train de")]
    assert corpus.validation.source == ["newstest2013 en"]
    assert corpus.test.source == ["newstest2014 en"]


def test_news_sets(write_lines, tmp_path):
    for stem in ("newstest2013", "newstest2014", "newstest2011"):
        write_lines(f"wmt-newstest-en-fr/{stem}.en-fr.en.gz", [f"{stem} en"])
        write_lines(f"wmt-newstest-en-fr/{stem}.en-fr.fr.gz", [f"{stem} fr"])
    corpus = load_corpus("wmt-newstest-en-fr", tmp_path)
    assert list(corpus.splits) == [
        "validation", "test", "newstest2011", "newstest2013", "newstest2014"
    ]  # fmt: skip
    assert list(corpus.test) == [("newstest2014 en", "newstest2014 fr")]
    with pytest.raises(ValueError, match="has no train split"):
        _ = corpus.train
    with pytest.raises(FileNotFoundError, match="newstest2013"):
        load_corpus("wmt-newstest-en-de", tmp_path)
