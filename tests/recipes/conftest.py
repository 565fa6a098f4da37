"""A corpus and a recipe so small that a whole run takes a second or two."""

import pytest

from transformer.data.corpora import Corpus, Split
from transformer.recipes.presets import PRESETS

NOUNS = ["cat", "dog", "house", "tree", "river", "train", "book", "window"]
GERMAN_NOUNS = ["Katze", "Hund", "Haus", "Baum", "Fluss", "Zug", "Buch", "Fenster"]


def make_corpus(test: bool = True, mark: str = ".") -> Corpus:
    pairs = [
        (f"the {NOUNS[i]} sees {number} of the {NOUNS[j]}s{mark}",
         f"{GERMAN_NOUNS[i]} sieht {number} mal {GERMAN_NOUNS[j]}{mark}")
        for i in range(8)
        for j in range(8)
        for number in (2, 5)
    ]  # fmt: skip
    pairs = pairs[::3] + pairs[1::3] + pairs[2::3]
    parts = {"train": pairs[:100], "validation": pairs[100:112], "test": pairs[112:124]}
    if not test:
        del parts["test"]
    splits = {n: Split([s for s, _ in part], [t for _, t in part]) for n, part in parts.items()}
    return Corpus("small", "en", "de", "free", splits)


@pytest.fixture(scope="session")
def make():
    """Makes a corpus: with a test split or without, each sentence ending in a mark."""
    return make_corpus


@pytest.fixture(scope="session")
def corpus():
    return make_corpus()


@pytest.fixture(scope="session")
def preset():
    # Dropout, so that a resumed run has random numbers to get wrong.
    return PRESETS["smoke"].with_changes(
        vocab_size=300, d_model=16, d_ff=16, dropout=0.1, max_steps=8, batch_tokens=200,
        warmup_steps=4, log_every=1, validate_every=4, save_every=3, keep_last=2, score_pairs=5,
        beam_size=2,
    )  # fmt: skip
