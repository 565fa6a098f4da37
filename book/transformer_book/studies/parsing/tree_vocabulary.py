"""Token ids of a parser: the few brackets that it writes first, then the words that it reads."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Bool

from transformer.data.batching import EncodedPairs, Sentences
from transformer.data.corpora.treebank import Tree
from transformer.data.tokenizer import SPECIAL_TOKENS
from transformer_book.studies.parsing.linearised_trees import WORD, PartialTree, to_brackets

PAD_ID, BOS_ID, EOS_ID = range(3)


def word_class(word: str) -> str:
    """Describe a rare word by its shape and its last two letters, such as ``<Aa-in>``."""
    if any(c.isdigit() for c in word):
        shape = "0" if re.fullmatch(r"[\d.,]+", word) else "a0"
    elif not any(c.isalpha() for c in word):
        shape = "?"
    elif word.islower():
        shape = "a"
    elif len(word) > 1 and word.isupper():
        shape = "AA"
    else:
        shape = "Aa" if word[0].isupper() and word[1:].islower() else "aA"
    ending = word[-2:].lower()
    return f"<{shape}-{ending}>" if len(word) > 2 and ending.isalpha() else f"<{shape}>"


class TreeVocabulary:
    """Token ids of ``outputs`` that a parser writes, and of further ``inputs`` that it reads."""

    def __init__(self, outputs: Sequence[str], inputs: Sequence[str]):
        self.outputs, self.inputs = list(outputs), list(inputs)
        self._output = {piece: i for i, piece in enumerate(self.outputs)}
        self._input = {piece: i for i, piece in enumerate(self.inputs, start=len(self.outputs))}
        special = np.arange(len(self.outputs)) <= EOS_ID
        self._opens, closes = (
            np.array([piece.startswith(side) for piece in self.outputs]) for side in "()"
        )
        self._words = ~(special | self._opens | closes)

    @classmethod
    def learn(
        cls, trees: Iterable[Tree], min_count: int = 3, tags: bool = False
    ) -> "TreeVocabulary":
        """Collect labels, words and perhaps tags; rare words are replaced by their class."""
        labels: set[str] = set()
        terminals: set[str] = set()
        words: Counter[str] = Counter()
        for tree in trees:
            labels.update(label for label, _, _ in tree.phrases())
            terminals.update(leaf.label if tags else WORD for leaf in tree.leaves())
            words.update(tree.words())
        classes: Counter[str] = Counter()
        for word, count in words.items():
            if count < min_count:
                classes[word_class(word)] += count
        kept = [
            sorted(name for name, count in counts.items() if count >= min_count)
            for counts in (classes, words)
        ]
        brackets = [side + label for label in sorted(labels) for side in "()"]
        # The text may contain a word such as "<a>".
        inputs = dict.fromkeys(["<rare>", *kept[0], *kept[1]])
        return cls([*SPECIAL_TOKENS, *sorted(terminals), *brackets], list(inputs))

    @property
    def tags(self) -> bool:
        """Whether a parser writes the tag of each word, not ``XX``."""
        return WORD not in self._output

    def __len__(self) -> int:
        return len(self.outputs) + len(self.inputs)

    def encode_words(self, words: Sequence[str]) -> list[int]:
        """Return the ids of the words of a sentence, without the end."""
        rare = self._input["<rare>"]
        return [self._input.get(w, self._input.get(word_class(w), rare)) for w in words]

    def encode_brackets(self, pieces: Sequence[str]) -> list[int]:
        """Return the ids of brackets and of ``XX`` or tags, without the end."""
        return [self._output[piece] for piece in pieces]

    def decode_brackets(self, ids: Sequence[int]) -> list[str]:
        """Return the brackets of ids, without special tokens."""
        return [self.outputs[i] for i in ids if i > EOS_ID]

    def allowed(self, tree: PartialTree) -> Bool[np.ndarray, "outputs"]:
        """Mark the outputs that may come next in a tree; only the end after a complete one."""
        found = np.zeros(len(self.outputs), dtype=bool)
        if tree.complete:
            found[EOS_ID] = True
        if tree.may_open():
            found |= self._opens
        if tree.may_take_word():
            found |= self._words
        if tree.may_close():
            found[self._output[f"){tree.open[-1]}"]] = True
        return found

    def encode_trees(self, trees: Iterable[Tree]) -> EncodedPairs:
        """Make training pairs of words and brackets, without trees that have unknown labels."""
        sources, targets = [], []
        for tree in trees:
            pieces = to_brackets(tree, self.tags)
            if all(piece in self._output for piece in pieces):
                sources.append([*self.encode_words(tree.words()), EOS_ID])
                targets.append([*self.encode_brackets(pieces), EOS_ID])
        return EncodedPairs(_flat(sources), _flat(targets), PAD_ID, BOS_ID)


def _flat(rows: list[list[int]]) -> Sentences:
    ids = [token for row in rows for token in row]
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return Sentences(np.array(ids, dtype=np.int32), offsets)
