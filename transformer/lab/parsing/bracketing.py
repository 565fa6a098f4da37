"""Labelled bracketing: how many phrases of a tree are right, as the program ``evalb`` counts them.

A phrase is right if the other tree has one of the same label over the same words. As with the
parameters that the WSJ is scored with (``COLLINS.prm``):

- Punctuation is taken out first, in both trees at the same places: words that the *gold* tree tags
  ``,`` ``:`` ``.`` or as quotation marks. A phrase that held nothing else does not count.
- Tags are not phrases and do not count. A root called ``TOP``, ``S1`` or ``ROOT`` does not count.
- ``ADVP`` and ``PRT`` are the same label.
- Counts are added over all sentences before precision and recall are taken.
- Of two equal phrases over the same words, each must be found.

What evalb does and this leaves out: crossing brackets and accuracy of tags. What evalb cannot do:
it skips a sentence whose trees differ in length, and so leaves it out of the score. Here that is an
error; :func:`~transformer.lab.parsing.linearised_trees.from_brackets` never makes such a tree.

Paper: section 6.3, Table 4 (F1 on section 23)
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from transformer.data.corpora.treebank import Tree

PUNCTUATION = frozenset({",", ":", "``", "''", "."})

UNCOUNTED = frozenset({"", "TOP", "S1", "ROOT"})

_SAME = {"PRT": "ADVP"}


@dataclass(frozen=True)
class Bracketing:
    """Phrases of one sentence or of many.

    Args:
        matched: phrases that both have.
        gold: phrases of the right trees.
        predicted: phrases of the trees in question.
        exact: sentences whose phrases are all right, with none too many.
        sentences: how many.

    Paper: Table 4
    """

    matched: int = 0
    gold: int = 0
    predicted: int = 0
    exact: int = 0
    sentences: int = 0

    def __add__(self, other: "Bracketing") -> "Bracketing":
        return Bracketing(
            self.matched + other.matched,
            self.gold + other.gold,
            self.predicted + other.predicted,
            self.exact + other.exact,
            self.sentences + other.sentences,
        )

    @property
    def precision(self) -> float:
        """Per cent of the predicted phrases that are right; 0 if there are none.

        Paper: Table 4
        """
        return 100 * self.matched / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Per cent of the gold phrases that are found; 0 if there are none.

        Paper: Table 4
        """
        return 100 * self.matched / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, in per cent; 0 if nothing is right.

        Paper: Table 4
        """
        both = self.gold + self.predicted
        return 200 * self.matched / both if both else 0.0

    @property
    def exact_match(self) -> float:
        """Per cent of the sentences that are right in every phrase."""
        return 100 * self.exact / self.sentences if self.sentences else 0.0


def counted_phrases(tree: Tree, gold: Tree) -> Counter[tuple[str, int, int]]:
    """Count the phrases of a tree that evalb looks at.

    Args:
        tree: the tree, over the same words as ``gold``.
        gold: says by its tags which words are punctuation.

    Returns:
        How often each (label, first word, end) occurs; positions leave out punctuation.

    Raises:
        ValueError: if the two have different words.

    Paper: Table 4
    """
    if tree.words() != gold.words():
        raise ValueError(
            f"tree must be over the words of gold, got {len(tree.words())} words for "
            f"{len(gold.words())}, or others"
        )
    place = [0]  # position of each word when punctuation is gone
    for leaf in gold.leaves():
        place.append(place[-1] + (leaf.label not in PUNCTUATION))
    found: Counter[tuple[str, int, int]] = Counter()
    for label, start, end in tree.phrases():
        if label not in UNCOUNTED and place[start] < place[end]:
            found[_SAME.get(label, label), place[start], place[end]] += 1
    return found


def compare(gold: Tree, predicted: Tree) -> Bracketing:
    """Compare two trees over the same words.

    Args:
        gold: the right tree, with its tags.
        predicted: the tree in question; its tags are not looked at.

    Raises:
        ValueError: if the two have different words.

    Paper: Table 4
    """
    right, guessed = counted_phrases(gold, gold), counted_phrases(predicted, gold)
    matched, exact = (right & guessed).total(), int(right == guessed)
    return Bracketing(matched, right.total(), guessed.total(), exact, 1)


def compare_all(gold: Iterable[Tree], predicted: Iterable[Tree]) -> Bracketing:
    """Compare trees of many sentences and add up.

    Args:
        gold: the right trees.
        predicted: the trees in question, in the same order.

    Raises:
        ValueError: if there are more of one than of the other, or two differ in their words.

    Paper: Table 4
    """
    pairs = zip(gold, predicted, strict=True)
    return sum((compare(right, guess) for right, guess in pairs), Bracketing())


def by_length(
    gold: Sequence[Tree], predicted: Sequence[Tree], bounds: Sequence[int] = (10, 20, 30, 40)
) -> dict[str, Bracketing]:
    """Compare trees of many sentences, in groups of like length.

    Args:
        gold: the right trees.
        predicted: the trees in question, in the same order.
        bounds: largest number of words, punctuation included, of each group but the last; rising.

    Returns:
        By group, such as ``11-20`` and at last ``41+``; groups without a sentence are left out.

    Raises:
        ValueError: as :func:`compare_all`.
    """
    lows = [1, *(bound + 1 for bound in bounds)]
    names = [f"{low}-{high}" for low, high in zip(lows, bounds, strict=False)] + [f"{lows[-1]}+"]
    groups = dict.fromkeys(names, Bracketing())
    for right, guess in zip(gold, predicted, strict=True):
        length = len(right.leaves())
        name = names[sum(length > bound for bound in bounds)]
        groups[name] += compare(right, guess)
    return {name: found for name, found in groups.items() if found.sentences}
