"""Trivial translators, for a sense of scale: a dictionary, and the most similar sentence."""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from transformer.data.parallel import Split
from transformer.data.progress import progress

_TOKEN = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


def words_of(text: str) -> list[str]:
    """Split a text into lower-cased words and punctuation marks."""
    return _TOKEN.findall(text.lower())


class WordByWord:
    """Replace each word by the one of the largest Dice coefficient with it; copy unknown ones."""

    def __init__(self, train: Split):
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
        # The best match of each source word comes last, so it stays in the dictionary.
        order = np.lexsort((dice, s))
        spelling = _spelling(train.target)
        self.dictionary = {source.words[s[i]]: spelling[target.words[t[i]]] for i in order}

    def translate(self, texts: Sequence[str]) -> list[str]:
        """Translate sentences; the first word of each is capitalised."""
        found = []
        for text in progress(texts):
            words = " ".join(self.dictionary.get(word, word) for word in words_of(text))
            line = re.sub(r" ([.,;:!?])", r"\1", words)
            found.append(line[:1].upper() + line[1:])
        return found


class NearestSentence:
    """Answer with the translation of the most similar training sentence; rare words weigh more."""

    def __init__(self, train: Split):
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
        """Return the similarity of a text to each sentence, up to a common factor."""
        known = [self.index[word] for word in dict.fromkeys(words_of(text)) if word in self.index]
        ids = [i for i in known if not self.frequent[i]] or known
        if not ids:
            return np.zeros(len(self.norm))
        places = np.concatenate([self.postings[i] for i in ids])
        shares = np.repeat(self.weight[ids] ** 2, [len(self.postings[i]) for i in ids])
        score = np.bincount(places, shares, minlength=len(self.norm))
        return score / np.maximum(self.norm, 1e-9)

    def find(self, text: str) -> int:
        """Return the index of the most similar sentence, the first one in case of a tie."""
        return int(np.argmax(self.similarity(text)))

    def translate(self, texts: Sequence[str]) -> list[str]:
        """Translate each sentence by the target of its nearest neighbour."""
        return [self.train.target[self.find(text)] for text in progress(texts)]


class _Vocabulary:
    """The words of a text: their ids, the ids of each sentence, and their document frequency."""

    def __init__(self, texts: Sequence[str]):
        self.index: dict[str, int] = {}
        self.rows = [
            np.array([self.index.setdefault(w, len(self.index)) for w in dict.fromkeys(words)], int)
            for words in map(words_of, texts)
        ]
        self.words = list(self.index)
        self.frequency = np.bincount(np.concatenate(self.rows), minlength=len(self.words))


def _spelling(texts: Sequence[str]) -> dict[str, str]:
    """Map each word to its usual spelling: German nouns are capitalised."""
    seen = Counter(token for text in texts for token in _TOKEN.findall(text)[1:])
    seen.update({token: 0 for text in texts for token in _TOKEN.findall(text)[:1]})
    # The most frequent spelling comes last, so it stays.
    return {token.lower(): token for token, _ in reversed(seen.most_common())}
