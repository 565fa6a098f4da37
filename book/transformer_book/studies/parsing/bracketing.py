"""Labelled bracketing: how many phrases of a tree are right, as the program ``evalb`` counts them.

A phrase is right if the other tree has one of the same label over the same words. The parameters
are those for the WSJ (``COLLINS.prm``):

- Punctuation is removed from both trees first: words that the *gold* tree tags ``,`` ``:`` ``.``
  or as quotation marks. A phrase of nothing else does not count.
- Tags are not phrases and do not count. A root called ``TOP``, ``S1`` or ``ROOT`` does not count.
- ``ADVP`` and ``PRT`` are the same label.
- Counts are added over all sentences before F1 is computed.
- Of two equal phrases over the same words, each must be found.

Crossing brackets and accuracy of tags are not counted. Where evalb skips a sentence whose trees
differ in length, this raises an error;
:func:`~transformer_book.studies.parsing.linearised_trees.from_brackets` never makes such a tree.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from itertools import accumulate

from transformer.data.corpora.treebank import Tree

PUNCTUATION = frozenset({",", ":", "``", "''", "."})

UNCOUNTED = frozenset({"", "TOP", "S1", "ROOT"})

_SAME = {"PRT": "ADVP"}


@dataclass(frozen=True)
class Bracketing:
    """Counts of one sentence or of many; shares are per cent."""

    matched: int = 0  #: phrases of both trees
    gold: int = 0  #: phrases of the right trees
    predicted: int = 0  #: phrases of the predicted trees
    exact: int = 0  #: sentences with exactly the right phrases
    sentences: int = 0

    def __add__(self, other: "Bracketing") -> "Bracketing":
        return Bracketing(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 if nothing is right."""
        both = self.gold + self.predicted
        return 200 * self.matched / both if both else 0.0

    @property
    def exact_match(self) -> float:
        """Share of the sentences with exactly the right phrases."""
        return 100 * self.exact / self.sentences if self.sentences else 0.0


def word_places(gold: Tree) -> list[int]:
    """Return the position of each word, and of the end, without punctuation."""
    return list(accumulate((leaf.label not in PUNCTUATION for leaf in gold.leaves()), initial=0))


def counted_phrases(tree: Tree, gold: Tree) -> Counter[tuple[str, int, int]]:
    """Count the (label, first word, end) of phrases as evalb does, without punctuation."""
    if tree.words() != gold.words():
        raise ValueError("tree must be over the words of gold")
    place = word_places(gold)
    found: Counter[tuple[str, int, int]] = Counter()
    for label, start, end in tree.phrases():
        if label not in UNCOUNTED and place[start] < place[end]:
            found[_SAME.get(label, label), place[start], place[end]] += 1
    return found


def compare(gold: Tree, predicted: Tree) -> Bracketing:
    """Compare two trees over the same words; the tags of ``predicted`` are ignored."""
    right, guessed = counted_phrases(gold, gold), counted_phrases(predicted, gold)
    matched, exact = (right & guessed).total(), int(right == guessed)
    return Bracketing(matched, right.total(), guessed.total(), exact, 1)


def compare_all(gold: Iterable[Tree], predicted: Iterable[Tree]) -> Bracketing:
    """Compare the trees of many sentences, in the same order, and add the counts."""
    pairs = zip(gold, predicted, strict=True)
    return sum((compare(right, guess) for right, guess in pairs), Bracketing())
