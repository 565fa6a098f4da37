import io
import tarfile

import pytest

from transformer.data import lines
from transformer.data.corpora.treebank import (
    load_treebank,
    plain,
    read_trees,
    split_articles,
)

# As in the Wall Street Journal: traces, functions, indices, a root without a label, line breaks.
FRAGMENT = """
( (S (NP-SBJ-1 (DT The) (NN cat) )
    (VP (VBD was)
      (VP (VBN seen)
        (NP (-NONE- *-1) )
        (PP-LGS (IN by)
          (NP=2 (-LRB- -LRB-) (PRP us) (-RRB- -RRB-) ))))
    (. .) ))
"""
PLAIN = (
    "(S (NP (DT The) (NN cat)) (VP (VBD was) (VP (VBN seen)"
    " (PP (IN by) (NP (-LRB- -LRB-) (PRP us) (-RRB- -RRB-))))) (. .))"
)


@pytest.fixture(scope="module")
def craft(unchecked):
    return load_treebank()


def one(text):
    [tree] = read_trees(text)
    return tree


def test_a_tree_comes_back_as_it_was_read():
    assert str(one(PLAIN)) == PLAIN
    assert str(one(FRAGMENT)).split() == FRAGMENT.replace(" )", ")").replace("( (S", "( (S").split()


def test_traces_and_function_tags_are_removed():
    assert str(plain(one(FRAGMENT))) == PLAIN
    tree = plain(one("(S (NP (-NONE- *)) (VP (VB go) (S (NP (-NONE- *)) (VP (-NONE- ?)))))"))
    assert str(tree) == "(S (VP (VB go)))"
    assert plain(one("( (S (NP (-NONE- *))))")) is None
    assert str(plain(one("( (S (VB go)) (. .))"))) == "(TOP (S (VB go)) (. .))"


def test_words_and_phrases():
    tree = one("(S (NP (DT the) (NN cat)) (VP (VB sat) (PP (IN on) (NP (PRP it)))))")
    assert tree.words() == ["the", "cat", "sat", "on", "it"]
    assert [leaf.label for leaf in tree.leaves()] == ["DT", "NN", "VB", "IN", "PRP"]
    assert tree.phrases() == [("NP", 0, 2), ("NP", 4, 5), ("PP", 3, 5), ("VP", 2, 5), ("S", 0, 5)]


@pytest.mark.parametrize(
    "text", ["(S (NP (NN a))", "(S (NN a)))", "(S a (NN b))", "(S (NN a b))", "(S ())", "a", "(S)"]
)
def test_damaged_brackets(text):
    with pytest.raises(ValueError, match="my file"):
        list(read_trees(text, "my file"))


def test_craft_is_what_its_authors_published(craft):
    assert len(craft.articles) == 97
    trees = craft.trees()
    assert len(trees) == 30_830
    assert sum(len(tree.leaves()) for tree in trees) == 793_651
    labels = {label for tree in trees for label, _, _ in tree.phrases()}
    assert len(labels) == 30 and not any("-" in label or "=" in label for label in labels)
    assert not any(leaf.label == "-NONE-" for tree in trees for leaf in tree.leaves())
    first = craft.articles["11319941"][0]
    assert " ".join(first.words()).startswith("Complex trait analysis of the mouse striatum :")


def test_the_split_is_by_article_and_the_same_everywhere(craft):
    split = split_articles(craft.articles)
    assert {part: len(names) for part, names in split.items()} == {
        "train": 77, "validation": 5, "test": 15,
    }  # fmt: skip
    together = [name for names in split.values() for name in names]
    assert sorted(together) == sorted(craft.articles)
    # The recorded runs were trained on this split; another would leak test articles.
    assert split["validation"] == [
        "15784609", "16504174", "16579849", "17078885", "17425782",
    ]  # fmt: skip
    assert split_articles(reversed(list(craft.articles))) == split


def test_the_journal_is_split_by_its_sections():
    names = [f"wsj_{section:02}{file:02}" for section in range(25) for file in (1, 2)]
    split = split_articles(names)
    assert {name[4:6] for name in split["train"]} == {f"{s:02}" for s in range(2, 22)}
    assert split["validation"] == ["wsj_2201", "wsj_2202"]
    assert split["test"] == ["wsj_2301", "wsj_2302"]


def test_a_folder_of_ones_own(tmp_path):
    for name in ("02/wsj_0201.mrg", "23/wsj_2301.mrg"):
        path = tmp_path / name
        path.parent.mkdir()
        path.write_text(FRAGMENT * 2)
    (tmp_path / "README").write_text("(no tree")
    bank = load_treebank(tmp_path)
    assert list(bank.articles) == ["wsj_0201", "wsj_2301"]
    assert [str(tree) for tree in bank.trees(["wsj_2301"])] == [PLAIN, PLAIN]
    before = bank.checksum
    path.write_text(FRAGMENT)
    assert load_treebank(tmp_path).checksum != before


def archive(path, members):
    with tarfile.open(path, "w:gz") as file:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
    return path


def test_an_archive_writes_nothing_to_disk(tmp_path, monkeypatch):
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.chdir(inside)
    data = FRAGMENT.encode()
    path = archive(tmp_path / "bad.tar.gz", [("../evil.mrg", data), ("/abs.tree", data)])
    assert sorted(load_treebank(path).articles) == ["abs", "evil"]
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["bad.tar.gz", "inside"]


def test_an_archive_that_claims_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "ALWAYS_ALLOWED", 1 << 20)
    path = archive(tmp_path / "trees.tar.gz", [("a.tree", bytes(20_000_000))])
    with pytest.raises(ValueError, match="unpacks to 20,000,000 bytes, more than"):
        load_treebank(path)


def test_what_cannot_be_loaded(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_treebank(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="mrg"):
        load_treebank(tmp_path)
    (tmp_path / "x.tar.gz").write_bytes(b"no archive")
    with pytest.raises(ValueError, match="archive"):
        load_treebank(tmp_path / "x.tar.gz")
    data = FRAGMENT.encode()
    with pytest.raises(ValueError, match="two files"):
        load_treebank(archive(tmp_path / "twice.tar.gz", [("a/x.mrg", data), ("b/x.mrg", data)]))
    with pytest.raises(ValueError, match="UTF-8"):
        load_treebank(archive(tmp_path / "latin.tar.gz", [("x.mrg", b"(NN \xe9)")]))
