import pytest

from transformer.data.corpora import corpus_from_files, load_corpus
from transformer.data.corpora.local import find_file


def test_unknown_name():
    with pytest.raises(ValueError, match="unknown corpus 'multi30k_en_fr'; .*'multi30k-en-fr'"):
        load_corpus("multi30k_en_fr")


def test_data_directory_must_exist(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="data_dir must be a directory"):
        load_corpus("tatoeba-en-de", tmp_path / "none")
    monkeypatch.setenv("TRANSFORMER_DATA_DIR", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match="TRANSFORMER_DATA_DIR must be a directory"):
        load_corpus("tatoeba-en-de")


def test_argument_comes_before_variable_and_folder_before_root(write_lines, tmp_path, monkeypatch):
    in_folder = write_lines("one/corpus/file.gz", ["a"])
    in_root = write_lines("one/file.gz", ["b"])
    other = write_lines("two/file", ["c"])
    monkeypatch.setenv("TRANSFORMER_DATA_DIR", str(tmp_path / "two"))
    assert find_file("file.gz", "corpus") == other
    assert find_file("file.gz", "corpus", tmp_path / "one") == in_folder
    in_folder.unlink()
    assert find_file("file.gz", "corpus", tmp_path / "one") == in_root
    assert find_file("nothing.gz", "corpus") is None


@pytest.fixture
def own_files(write_lines):
    lines = range(200)
    return (
        write_lines("own.en", [f"sentence {i}" for i in lines]),
        write_lines("own.xx.gz", [f"other {i}" for i in lines]),
    )


def test_own_files_hold_some_out(own_files):
    corpus = corpus_from_files(own_files, source_language="en", target_language="xx")
    assert (corpus.name, corpus.source_language, corpus.target_language) == ("own.en", "en", "xx")
    assert {name: len(split) for name, split in corpus.splits.items()} == {
        "train": 190, "validation": 10
    }  # fmt: skip
    assert not set(corpus.train) & set(corpus.validation)
    assert corpus.checksum == corpus_from_files(own_files).checksum


def test_own_validation_and_test_files(own_files, write_lines):
    def files(name):
        return write_lines(f"{name}.en", [name]), write_lines(f"{name}.xx", [f"x{name}"])

    corpus = corpus_from_files(own_files, files("dev"), files("test"))
    assert len(corpus.train) == 200 and corpus.train.source[7] == "sentence 7"
    assert list(corpus.validation) == [("dev", "xdev")] and list(corpus.test) == [("test", "xtest")]
    assert "test" in corpus_from_files(own_files, test=files("test")).splits
