"""Sentences with an answer per word, or with an answer as a span of words.

Names: English sentences of Tatoeba in lower case. A word is a name if it is capitalised in the
original and does not begin a sentence; *I* is excluded. The rule counts days, months, nations and
languages as names, and misses names at the beginning.

Phrases: sentences of the CRAFT treebank, each with a question in front. The answer is the subject
(the last noun phrase before the main verb phrase) or the object (the first noun phrase inside it),
as the annotators bracketed them.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from transformer.data.corpora.treebank import Tree
from transformer_book.studies.parsing.tree_vocabulary import word_class

#: The questions about a sentence, as tokens in front of it.
QUESTIONS = ("<subject?>", "<object?>")

_WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?|\d+|[^\sA-Za-z\d]")


@dataclass(frozen=True)
class Named:
    """Words in lower case, and which of them are names; the first word of a sentence never is."""

    words: list[str]
    names: list[bool]


def find_names(text: str) -> Named:
    """Split a sentence into lower-case words, and mark those that were capitalised as names."""
    words = _WORD.findall(text)
    begins = [i == 0 or words[i - 1] in '.?!:"' for i in range(len(words))]
    names = [
        word[0].isupper() and not begin and word.split("'")[0] != "I"
        for word, begin in zip(words, begins, strict=True)
    ]
    return Named([word.lower() for word in words], names)


def named_sentences(texts: Iterable[str], count: int) -> list[Named]:
    """Return the first ``count`` different sentences of 4 to 14 words."""
    found: dict[str, Named] = {}
    for text in texts:
        if len(found) == count:
            break
        sentence = find_names(text)
        if 4 <= len(sentence.words) <= 14:
            found.setdefault(" ".join(sentence.words), sentence)
    return list(found.values())


@dataclass(frozen=True)
class Phrases:
    """Words with the spans of subject and object; a span ends after its last word."""

    words: list[str]
    spans: tuple[tuple[int, int], tuple[int, int]]


def find_phrases(tree: Tree) -> Phrases | None:
    """Find subject and object of a main clause; None if the tree has no such pair."""
    while len(tree.children) == 1:
        tree = tree.children[0]
    subject, start = None, 0
    for part in tree.children if tree.label == "S" else ():
        end = start + len(part.leaves())
        if part.label == "NP":
            subject = start, end
        elif part.label == "VP":
            found = _object(part, start)
            return Phrases(tree.words(), (subject, found)) if subject and found else None
        start = end
    return None


def _object(phrase: Tree, start: int) -> tuple[int, int] | None:
    for part in phrase.children:
        end = start + len(part.leaves())
        if part.label == "NP":
            return start, end
        if part.label == "VP":
            return _object(part, start)  # the first verb is an auxiliary
        start = end
    return None


def phrases_of(trees: Iterable[Tree], longest: int = 20) -> list[Phrases]:
    """Return the sentences of at most ``longest`` words that have both phrases."""
    found = map(find_phrases, trees)
    return [each for each in found if each and len(each.words) <= longest]


class WordIds:
    """Ids of words that occur at least twice; rarer ones share an id by their ending."""

    def __init__(self, sentences: Sequence[Sequence[str]]):
        counts = Counter(word for words in sentences for word in words)
        kept = [word for word, count in counts.items() if count > 1]
        rare = {word_class(word) for word, count in counts.items() if count == 1}
        self.seen = frozenset(counts)
        self._ids = {word: i for i, word in enumerate([*sorted(kept), *sorted(rare)], start=4)}

    def __len__(self) -> int:
        return len(self._ids) + 4

    def encode(self, words: Sequence[str]) -> list[int]:
        """Return the ids of words."""
        known = self._ids
        return [known.get(word, known.get(word_class(word), 3)) for word in words]
