"""The mixture contains all its sources, and no sentence of a test set."""

import gzip
import lzma
from hashlib import sha256

import pytest

from transformer.data.corpora import load_corpus, mixture, multi30k

HELD_OUT = ["validation", "test", "tatoeba", "multi30k"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Generated files of every source. Each test set has a sentence that training has too."""
    folder, sums = tmp_path_factory.mktemp("files"), {}

    def write_lines(name, lines):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        pack = lzma.compress if path.suffix == ".xz" else gzip.compress
        path.write_bytes(pack("".join(f"{line}\n" for line in lines).encode()))
        return path

    # Tatoeba needs enough pairs to hold some out.
    pairs = [f"everyday {i}\tAlltag {i}" for i in range(5000)]
    write_lines("tatoeba-en-de/deu.txt.xz", [*pairs, "challenge 1\tanders"])
    for side, word in (("eng", "challenge"), ("deu", "Probe")):
        name = f"tatoeba-en-de/tatoeba-test-v2021-08-07.deu-eng.{side}.xz"
        write_lines(name, [f"{word} {i}" for i in range(3)])

    for stem in multi30k.SPLITS.values():
        for language in ("en", "de"):
            lines = [f"{stem} {language} {i}" for i in range(3)]
            if stem == "train":
                lines += [f"test_2017_mscoco {language} 1" if language == "en" else "frei"]
            path = write_lines(f"multi30k-task1/{stem}.{language}.gz", lines)
            sums[path.name] = sha256(path.read_bytes()).hexdigest()

    for stem in (*mixture.TRAINING_NEWS, "newstest2013", "newstest2014", "newstest2015"):
        english = [f"{stem} en {i}" for i in range(2)]
        german = [f"{stem} de {i}" for i in range(2)]
        if stem == "newstest2010":
            english += ["newstest2014 en 1", "free"]
            german += ["frei", "newstest2013 de 0"]
        write_lines(f"wmt-newstest-en-de/{stem}.en-de.en.gz", english)
        write_lines(f"wmt-newstest-en-de/{stem}.en-de.de.gz", german)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(multi30k, "SHA256", sums)
        yield folder


@pytest.fixture(scope="module")
def corpus(files):
    return load_corpus("mixture-en-de", files)


def test_every_source_is_in_the_training_text(corpus):
    train = set(corpus.train)
    assert ("train en 2", "train de 2") in train
    for stem in mixture.TRAINING_NEWS:
        assert {(f"{stem} en {i}", f"{stem} de {i}") for i in range(2)} <= train
    everyday = {pair for pair in train if pair[0].startswith("everyday")}
    assert len(everyday | set(corpus.splits["tatoeba"]) - {("challenge 1", "anders")}) == 5000
    # 2 of news a set, 3 captions; nothing else, and nothing twice.
    assert len(corpus.train) == len(train) == len(everyday) + 2 * 6 + 3


def test_the_test_sets_are_whole_and_named(corpus):
    assert list(corpus.splits) == ["train", *HELD_OUT]
    assert corpus.validation.source == ["newstest2013 en 0", "newstest2013 en 1"]
    assert corpus.test.source == ["newstest2014 en 0", "newstest2014 en 1"]
    assert corpus.splits["multi30k"].target == [f"test_2016_flickr de {i}" for i in range(3)]


def test_no_sentence_of_any_test_set_on_either_side_of_training(corpus, files):
    """This includes the sets that the mixture itself does not score."""
    own = [corpus.splits[name] for name in HELD_OUT]
    captions, everyday = (load_corpus(f"{n}-en-de", files) for n in ("multi30k", "tatoeba"))
    others = [captions.splits[name] for name in ("validation", "test2017", "mscoco")]
    for split in [*own, *others, everyday.splits["challenge"]]:
        assert not set(split.source) & set(corpus.train.source)
        assert not set(split.target) & set(corpus.train.target)
    for planted in ("newstest2014 en 1", "free", "test_2017_mscoco en 1", "challenge 1"):
        assert planted not in corpus.train.source
