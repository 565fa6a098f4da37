"""Translators that learn nothing worth the name, for a sense of scale.

A score of 40 means little until one knows what a copy of the source gets, what a dictionary gets,
and what the most similar sentence of the training text gets.
"""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from transformer.data.parallel import Split
from transformer.training.progress import progress

_TOKEN = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


def words_of(text: str) -> list[str]:
    """Cut a text into lower-cased words and marks of punctuation."""
    return _TOKEN.findall(text.lower())


class WordByWord:
    """Replace each word by the one that keeps it company, in the order of the source.

    The company that two words keep is Dice's: twice the number of sentence pairs with both, over
    the sum of the pairs with either. A word that training never showed is copied.

    Args:
        train: pairs to learn from.

    Raises:
        ValueError: if there are no pairs.
    """

    def __init__(self, train: Split):
        if not len(train):
            raise ValueError("train must hold at least one pair, got none")
        sides = [_Vocabulary(text) for text in (train.source, train.target)]
        source, target = sides
        size = len(target.words)
        pairs = np.concatenate(
            [
                np.add.outer(s * size, t).ravel()
                for s, t in zip(source.rows, target.rows, strict=True)
            ]
        )
        pairs, together = np.unique(pairs, return_counts=True)
        s, t = np.divmod(pairs, size)
        dice = 2 * together / (source.frequency[s] + target.frequency[t])
        # The best of each source word comes last among its own, and so stays in the dictionary.
        order = np.lexsort((dice, s))
        spelling = _spelling(train.target)
        self.dictionary = {source.words[s[i]]: spelling[target.words[t[i]]] for i in order}

    def translate(self, texts: Sequence[str]) -> list[str]:
        """Translate sentences; the first word of each gets a capital."""
        found = []
        for text in progress(texts):
            words = " ".join(self.dictionary.get(word, word) for word in words_of(text))
            line = re.sub(r" ([.,;:!?])", r"\1", words)
            found.append(line[:1].upper() + line[1:])
        return found


class NearestSentence:
    """Answer with the translation of the most similar sentence of the training text.

    Similarity is the cosine between bags of words, in which a rare word counts more than a
    frequent one. Words of more than one sentence in twenty are looked at only where a sentence has
    no others.

    Args:
        train: pairs to look in.

    Raises:
        ValueError: if there are no pairs.
    """

    def __init__(self, train: Split):
        if not len(train):
            raise ValueError("train must hold at least one pair, got none")
        self.train = train
        vocabulary = _Vocabulary(train.source)
        self.index = vocabulary.index
        n = len(train)
        self.weight = np.log((1 + n) / vocabulary.frequency)
        words = np.concatenate(vocabulary.rows)
        places = np.repeat(np.arange(n), [len(row) for row in vocabulary.rows])
        self.norm = np.sqrt(np.bincount(places, self.weight[words] ** 2, minlength=n))
        order = np.argsort(words, kind="stable")
        self.postings = np.split(places[order], np.cumsum(vocabulary.frequency)[:-1].astype(int))
        self.frequent = vocabulary.frequency > n / 20

    def similarity(self, text: str) -> Float[np.ndarray, " pairs"]:
        """Return the similarity of a text to each sentence, up to a factor that all share."""
        known = [self.index[word] for word in dict.fromkeys(words_of(text)) if word in self.index]
        ids = [i for i in known if not self.frequent[i]] or known
        if not ids:
            return np.zeros(len(self.norm))
        places = np.concatenate([self.postings[i] for i in ids])
        shares = np.repeat(self.weight[ids] ** 2, [len(self.postings[i]) for i in ids])
        score = np.bincount(places, shares, minlength=len(self.norm))
        return score / np.maximum(self.norm, 1e-9)

    def find(self, text: str) -> int:
        """Return the place of the most similar sentence; the first one of equals."""
        return int(np.argmax(self.similarity(text)))

    def translate(self, texts: Sequence[str]) -> list[str]:
        """Give each sentence the translation of its nearest."""
        return [self.train.target[self.find(text)] for text in progress(texts)]


class _Vocabulary:
    """The words of a text: an id for each, the ids of each sentence, how many sentences have it."""

    def __init__(self, texts: Sequence[str]):
        self.index: dict[str, int] = {}
        self.rows = [
            np.array([self.index.setdefault(w, len(self.index)) for w in dict.fromkeys(words)], int)
            for words in map(words_of, texts)
        ]
        self.words = list(self.index)
        self.frequency = np.bincount(np.concatenate(self.rows), minlength=len(self.words))


def _spelling(texts: Sequence[str]) -> dict[str, str]:
    """How each word is usually written: German nouns have a capital."""
    seen = Counter(token for text in texts for token in _TOKEN.findall(text)[1:])
    seen.update({token: 0 for text in texts for token in _TOKEN.findall(text)[:1]})
    # The most frequent comes last, and so it stays.
    return {token.lower(): token for token, _ in reversed(seen.most_common())}
