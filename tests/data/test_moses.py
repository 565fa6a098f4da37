"""Lower-cased Moses tokens: what becomes of a sentence, of its splits and of its language."""

import pytest

from transformer.data.moses import moses_lowercased
from transformer.data.parallel import Corpus, Split, StreamedSplit

pytest.importorskip("sacremoses")


def corpus(source, target, languages=("en", "de")):
    splits = {"train": Split(source, target), "test": Split(source[:1], target[:1])}
    return Corpus("mine", *languages, "free", splits)


def test_words_and_marks_come_apart_in_lower_case():
    before = corpus(['A "Dog", isn\'t it?', ""], ["Ein Hund & Ärger-Übung.", " "])
    after = moses_lowercased(before)
    # Not escaped: no &quot; and no &amp;
    assert after.train.source == ['a " dog " , isn \'t it ?', ""]
    assert after.train.target == ["ein hund & ärger-übung .", ""]
    assert after.test.source == after.train.source[:1]
    assert (after.name, after.licence, list(after.splits)) == ("mine", "free", ["train", "test"])
    assert before.train.source[0].startswith('A "Dog"')  # the corpus that came in is as it was
    assert after.checksum != before.checksum


def test_the_language_decides():
    text = ["l'homme et l'oiseau"]
    french = moses_lowercased(corpus(text, text, ("fr", "en"))).train
    assert french.source == ["l' homme et l' oiseau"]
    assert french.target == ["l 'homme et l 'oiseau"]


def test_a_text_without_a_language_is_refused():
    with pytest.raises(ValueError, match="'target' is not a language code; set source_language"):
        moses_lowercased(corpus(["a"], ["b"], ("en", "target")))


def test_a_text_on_disk_stays_there():
    reads = []

    def read():
        reads.append(1)
        return [("A dog.", "L'homme.")]

    def converted(*languages):
        before = Corpus("mine", *languages, "free", {"train": StreamedSplit(read, "text")})
        return moses_lowercased(before).train

    after = converted("en", "fr")
    assert isinstance(after, StreamedSplit) and not reads
    assert list(after) == list(after) == [("a dog .", "l' homme .")]
    assert len({"text", after.identity, converted("en", "de").identity}) == 3
