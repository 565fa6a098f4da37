"""Pictures of chapter 20: a sentence, its brackets and its tree, and how F1 compares two trees.

Sentences, trees and outputs are those of the record of :mod:`transformer_book.studies.parsing`.
"""

from collections import Counter

from transformer.data.corpora.treebank import Tree, read_trees
from transformer_book.drawing import Drawing, Number, Picture

#: A test sentence that the recorded Transformer parses as the treebank does.
PARSED = (
    "(S (NP (JJ Marginal) (NNS cells)) (VP (VBD appeared) (S (VP (TO to) (VP (VB form) (NP (DT a) "
    "(JJ continuous) (NN layer)))))) (. .))"
)
#: A test sentence, and what the recorded Transformer writes for it.
COMPARED = (
    "(S (NP (DT The) (CD two) (NNS RBDs)) (VP (VBP are) (ADJP (ADVP (RB especially) (RB highly)) "
    "(VBN conserved))) (. .))"
)
WRITTEN = "(S (NP XX XX XX )NP (VP XX (ADVP XX )ADVP (ADJP XX XX )ADJP )VP XX )S"

_COLOURS = {"NP": "blue", "VP": "vermilion", "S": "purple"}
_LETTER = 7.1  # width of a letter, on average


def _brackets(tree: Tree) -> list[str]:
    if tree.word is not None:
        return ["XX"]
    inside = [piece for part in tree.children for piece in _brackets(part)]
    return [f"({tree.label}", *inside, f"){tree.label}"]


def tree_and_brackets() -> Picture:
    """Draw the words that the model reads, the brackets that it writes, and their tree."""
    (tree,) = read_trees(PARSED)
    words, pieces = tree.words(), _brackets(tree)

    def draw(picture: Drawing) -> None:
        left, top = (4, 34) if picture.narrow else (120, 10)
        wide = picture.width - left
        heads = ("The model reads", "and writes", "which is a tree")
        width = sum(len(word) * _LETTER for word in words)
        gap = (wide - width) / len(words)
        centres, at = [], left + gap / 2
        for word in words:
            centres.append(at + len(word) * _LETTER / 2)
            at += len(word) * _LETTER + gap
        _head(picture, heads[0], top)
        for centre, word in zip(centres, words, strict=True):
            picture.text((centre, top + 13), word)
        picture.arrow((left + wide / 2, top + 28), (left + wide / 2, top + 54), colour="ink",
                      width=2)  # fmt: skip
        second = top + 66 + (24 if picture.narrow else 0)
        _head(picture, heads[1], second)
        bottom = _chips(picture, left, second, wide, pieces)
        third = bottom + 30 + (24 if picture.narrow else 0)
        _head(picture, heads[2], third)
        _branches(picture, tree, centres, third + 14)

    return Picture(
        "The words “Marginal cells appeared to form a continuous layer .”, below them the 23 "
        "brackets and XX that the model writes, and below these the tree that they describe: a "
        "sentence S of a noun phrase, “Marginal cells”, and a verb phrase, which holds a clause, "
        "two more verb phrases and the noun phrase “a continuous layer”. Phrases have the colour "
        "of their brackets.",
        draw,
        (688, 430),
        narrow=(376, 540),
    )


def _head(picture: Drawing, text: str, y: Number) -> None:
    at = (0, y - 16) if picture.narrow else (0, y + 13)
    picture.text(at, text, "soft", 13, "start")


def _chips(picture: Drawing, left: Number, y: Number, wide: Number, pieces: list[str]) -> Number:
    """Draw pieces from left to right in lines; return the lower edge of the last one."""
    x = left
    for piece in pieces:
        width = 9 * len(piece) + 10
        if x + width > left + wide:
            x, y = left, y + 32
        colour = _COLOURS.get(piece[1:], "hidden")
        picture.box(x, y, width, 26, piece, colour, "ink" if piece == "XX" else "ground")
        x += width + 4
    return y + 26


def _branches(picture: Drawing, tree: Tree, centres: list[float], top: Number) -> None:
    """Draw a tree whose words are at given places, with a level per phrase above them."""
    step, floor = 38, top + 38 * tree.depth()

    def draw(node: Tree, level: int, start: int) -> tuple[float, Number, int]:
        if node.word is not None:
            picture.text((centres[start], floor), node.word)
            return centres[start], floor - 12, start + 1
        y, ends, end = top + step * level, [], start
        for child in node.children:
            x, under, end = draw(child, level + 1, end)
            ends.append((x, under))
        middle = (ends[0][0] + ends[-1][0]) / 2
        for x, under in ends:
            picture.arrow((middle, y + 13), (x, under), tip=False)
        picture.box(middle - 18, y - 13, 36, 26, node.label, _COLOURS[node.label], "ground",
                    bold=True)  # fmt: skip
        return middle, y - 13, end

    draw(tree, 0, 0)


def phrases_compared() -> Picture:
    """Draw the phrases of a right tree and of a parser's as bars below the words."""
    (gold,) = read_trees(COMPARED)
    words = gold.words()
    right, guessed = Counter(gold.phrases()), Counter(_phrases(WRITTEN.split()))
    both = right & guessed
    rows = [
        *((phrase, "in both", "green") for phrase in sorted(both, key=_longest)),
        *((phrase, "missed", "blue") for phrase in sorted(right - both, key=_longest)),
        *((phrase, "wrong", "vermilion") for phrase in sorted(guessed - both, key=_longest)),
    ]
    score = 200 * both.total() / (right.total() + guessed.total())

    def draw(picture: Drawing) -> None:
        left, gap, letter = (60, 4, 6.2) if picture.narrow else (110, 14, 7.8)
        starts, at = [], left + 0.0
        for word in words:
            starts.append(at)
            at += len(word) * letter + 5 + gap
        starts.append(at)
        size = 12 if picture.narrow else 14
        for i, word in enumerate(words):
            picture.text(((starts[i] + starts[i + 1] - gap) / 2, 14), word, "ink", size)
        for row, ((label, first, end), said, colour) in enumerate(rows):
            y = 34 + 32 * row
            picture.text((0, y + 12), said, colour, 13, "start", bold=True)
            width = starts[end] - starts[first] - gap
            picture.box(starts[first], y, width, 24, label, colour, "ground", corner=4)
        text = f"F1 = 2 · {both.total()} / ({right.total()} + {guessed.total()}) = {score:.0f}%"
        picture.text((picture.width / 2, 34 + 32 * len(rows) + 20), text, bold=True)

    return Picture(
        "The words “The two RBDs are especially highly conserved .” and below them seven bars, one "
        "per phrase. Green, in both trees: S, NP and VP. Blue, missed by the parser: ADJP over "
        "“especially highly conserved” and ADVP over “especially highly”. Orange, wrong: ADJP "
        "over “highly conserved” and ADVP over “especially”. F1 is 2 times 3 over 5 plus 5, 60%.",
        draw,
        (560, 296),
        narrow=(376, 296),
    )


def _longest(phrase: tuple[str, int, int]) -> tuple[int, int]:
    return phrase[1] - phrase[2], phrase[1]


def _phrases(pieces: list[str]) -> list[tuple[str, int, int]]:
    """Return label, first word and end of each phrase of brackets that match."""
    found, waiting, words = [], [], 0
    for piece in pieces:
        if piece == "XX":
            words += 1
        elif piece.startswith("("):
            waiting.append((piece[1:], words))
        else:
            found.append((*waiting.pop(), words))
    return found


#: The words of a sentence; and beginnings of its tree, a remark, and the pieces that may follow.
BEGINNINGS = (
    ("The", "animal", "was", "tired"),
    (
        ("(S (NP XX XX", "two words left", {"XX", "(", ")NP"}),
        ("(S (NP XX XX )NP (VP XX", "one word left", {"XX", "(", ")VP"}),
        ("(S (NP XX XX XX XX", "all four words taken too early", {")NP"}),
    ),
)


def what_may_follow() -> Picture:
    """Draw three beginnings of a tree, and which pieces may come next."""
    words, rows = BEGINNINGS

    def draw(picture: Drawing) -> None:
        height = 92 if picture.narrow else 62
        picture.text((0, 12), f"The words: {' '.join(words)}", "ink", 14, "start")
        for i, (beginning, said, allowed) in enumerate(rows):
            y = 34 + height * i
            picture.text((0, y + 8), said, "soft", 13, "start")
            _chips(picture, 0, y + 18, picture.width, beginning.split())
            x, below = (30, 32) if picture.narrow else (330, 0)
            picture.arrow((x - 26, y + 31 + below), (x - 6, y + 31 + below), colour="ink")
            (close,) = (piece for piece in allowed if piece.startswith(")"))
            for piece in ("XX", "(", close, ")S", "end"):
                width, top = 9 * len(piece) + 14, y + 18 + below
                if piece in allowed:
                    picture.box(x, top, width, 26, piece, "green", "ground", bold=True)
                else:
                    picture.box(x, top, width, 26, piece, "pale", "soft")
                    picture.arrow((x + 3, top + 13), (x + width - 3, top + 13), tip=False)
                x += width + 6

    return Picture(
        "Three beginnings of a tree over the four words “The animal was tired”. After (S (NP XX XX "
        "another XX, an opening bracket and )NP may follow; )S and the end are crossed out. After "
        "(S (NP XX XX )NP (VP XX the same is true with )VP. After (S (NP XX XX XX XX, a miscount, "
        "no word is left, and only )NP may follow.",
        draw,
        (600, 34 + 62 * 3),
        narrow=(376, 34 + 92 * 3),
    )
