"""Common statements about the Transformer, with verdicts.

The chapter on myths has an experiment for each of them.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Literal, get_args

from transformer.book.tables import Table

Verdict = Literal["wrong", "half true", "true of something else"]

Theme = Literal[
    "What attention computes",
    "Heads",
    "Masks",
    "Positions",
    "Distance and cost",
    "Training, decoding and tools",
    "The paper itself",
]

#: The notebook of each chapter that a statement refers to, by its number.
CHAPTERS = {
    name[:2]: name
    for name in (
        "01_why_attend", "02_attention", "04_scaling", "05_heads", "06_masks", "07_positions",
        "08_feed_forward", "09_depth", "10_embeddings", "11_assembly", "13_recipe", "14_decoding",
        "15_table_1", "16_training", "17_translation", "18_table_3", "20_heads_learned",
        "21_left_out", "22_long_sequences", "23_beyond_translation",
    )
}  # fmt: skip


@dataclass(frozen=True)
class Myth:
    """A common statement about the Transformer.

    Args:
        theme: heading in the chapter.
        said: the statement. It becomes a heading, so it consists of letters, digits, blanks, commas
            and hyphens, and begins with a letter.
        verdict: "wrong"; "half true", which needs a condition; or "true of something else", of
            another part, model or text than the one it is said about.
        truth: the correct statement, in a sentence.
        chapters: numbers of the chapters that explain more, such as "07".

    Raises:
        ValueError: if the statement would not make a safe anchor.
    """

    theme: Theme
    said: str
    verdict: Verdict
    truth: str
    chapters: tuple[str, ...]

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*(,? [A-Za-z0-9]+|-[A-Za-z0-9]+)*", self.said):
            raise ValueError(f"said must be plain words, to make an anchor, got {self.said!r}")

    @property
    def anchor(self) -> str:
        """Anchor of its section, without the hash."""
        return re.sub(r"[^a-z0-9]+", "-", self.said.lower())

    @property
    def heading(self) -> str:
        """Heading of its section, as Markdown."""
        return f'### "{self.said}"'


_ATTENTION, _HEADS, _MASKS, _POSITIONS, _COST, _TRAINING, _PAPER = get_args(Theme)

#: By theme, in the order of the chapter.
MYTHS = (
    Myth(_ATTENTION, "Scaled means that the softmax scales the output", "wrong",
         "The scores are divided by the root of d_k, before the softmax.",
         ("04", "02")),
    Myth(_ATTENTION, "The scores are divided by the number of dimensions", "wrong",
         "They are divided by the square root of the size of the keys, d_k.",
         ("04",)),
    Myth(_ATTENTION, "The divisor is the root of the size of queries, keys and values", "half true",
         "It is that of queries and keys. Values may have any size.", ("04", "05")),
    Myth(_ATTENTION, "In self-attention the key and the value are the same", "wrong",
         "They come from the same sequence, by two different matrices.",
         ("02",)),
    Myth(_ATTENTION, "Keys and values are the word embeddings", "wrong",
         "They are projections of what the layer below gave; embeddings enter the first layer.",
         ("02", "10")),
    Myth(_ATTENTION, "Every token has weight matrices of its own", "wrong",
         "One set of matrices serves all positions; heads and layers have their own.",
         ("02", "08")),
    Myth(_ATTENTION, "A word attends most to itself", "wrong",
         "Nothing in the formula favours it: queries and keys have different matrices.",
         ("20",)),
    Myth(_ATTENTION, "The encoder hands one set of keys and values to the decoder", "half true",
         "It hands over vectors; every decoder layer makes keys and values of its own from them.",
         ("11",)),
    Myth(_ATTENTION, "Self-attention is invariant to shuffling", "true of something else",
         "It is equivariant: its outputs are shuffled in the same way. "
         "Memory may be shuffled freely.",
         ("02", "07")),
    Myth(_ATTENTION, "The Transformer invented attention", "wrong",
         "Recurrent translators had it before; new is to use little else between positions.",
         ("01", "17")),
    Myth(_ATTENTION, "A Transformer is nothing but attention", "half true",
         "Only attention moves information between positions; most weights are elsewhere.",
         ("08", "11")),
    Myth(_ATTENTION, "An attention map explains the prediction", "half true",
         "It says where a head looks. What depends on it is another question, and testable.",
         ("20",)),
    Myth(_HEADS, "A head is a row of the weight matrix, one for each interpretation", "wrong",
         "A head has three matrices of its own, with d_k or d_v rows, and no assigned meaning.",
         ("05",)),
    Myth(_HEADS, "Every head learns a role of its own", "half true",
         "Some do. Most mix several things, and many can be silenced at little cost.", ("20",)),
    Myth(_HEADS, "Several heads are there for long range", "wrong",
         "One head reaches as far. Several can look at several places at once.", ("05",)),
    Myth(_HEADS, "Eight heads cost eight times as much as one", "wrong",
         "They share d_model between them: same weights, same products.", ("05",)),
    Myth(_HEADS, "The more heads the better", "half true",
         "Up to a point: the more heads, the shorter their keys, and short keys hurt.",
         ("05", "18")),
    Myth(_MASKS, "The mask is there because what follows is garbage", "wrong",
         "In training what follows is the right answer; the mask keeps it from being copied.",
         ("06",)),
    Myth(_MASKS, "In training, too, the decoder works word by word", "wrong",
         "All positions at once: the mask is what makes that honest.",
         ("06", "14")),
    Myth(_MASKS, "A position must not see itself", "wrong",
         "Up to and including itself: its input is the word before the one it predicts.", ("06",)),
    Myth(_MASKS, "The causal mask halves the work", "true of something else",
         "A mask hides scores after they are computed. Kernels that skip them do less.", ("15",)),
    Myth(_MASKS, "Padding must be masked as a query, too", "wrong",
         "As a key it must. What padding itself computes is read by nobody.", ("06",)),
    Myth(_MASKS, "Padding with zeros needs no mask", "wrong",
         "A score of 0 is not a weight of 0.", ("06",)),
    Myth(_POSITIONS, "The paper puts sines on the left and cosines on the right",
         "true of something else",
         "The paper alternates them; its code had halves. The order of columns does not matter.",
         ("07",)),
    Myth(_POSITIONS, "The model learns the pattern of the sinusoids", "wrong",
         "They are a fixed table without parameters; so is the rotation from one to the next.",
         ("07",)),
    Myth(_POSITIONS, "Concatenated positions would overflow the integers", "wrong",
         "Sines stay within 1 either way. Concatenation costs width, and nothing else.",
         ("07",)),
    Myth(_POSITIONS, "Sinusoids let the model read longer sentences", "half true",
         "The table has no end; what was learned from its beginning need not.", ("07",)),
    Myth(_POSITIONS, "Without positional encodings there is no order", "half true",
         "True of the encoder. A causal mask gives some order away.", ("07",)),
    Myth(_COST, "Convolutions are slow", "wrong",
         "All their positions run at once; it is far positions that they connect in many layers.",
         ("01", "15")),
    Myth(_COST, "The operations between two words grow exponentially with their distance", "wrong",
         "In proportion, or with the logarithm; for attention not at all.",
         ("01", "15")),
    Myth(_COST, "With a path of one step nothing is forgotten", "half true",
         "Nothing is out of reach, but each position gets a share of about 1 in n.", ("01", "02")),
    Myth(_COST, "Self-attention is cheaper than recurrence", "half true",
         "A layer costs less than a GRU's while the sequence is shorter than its vectors.",
         ("01", "15")),
    Myth(_COST, "A Transformer writes all words at once", "true of something else",
         "It trains so, and reads so. It writes one token after another.", ("14",)),
    Myth(_COST, "Transformer-XL divides the text hierarchically", "wrong",
         "It reads segment by segment and keeps the states of the last one: a recurrence.",
         ("22",)),
    Myth(_COST, "Half precision, accumulation and checkpointing lift the quadratic cost", "wrong",
         "They change the factor. The square of n stays, unless the scores are never stored.",
         ("22", "15")),
    Myth(_TRAINING, "The last linear layer gives probabilities", "wrong",
         "It gives logits, any real numbers. The softmax makes probabilities of them.",
         ("10",)),
    Myth(_TRAINING, "The softmax picks the word", "half true",
         "It only grades all words. A search picks, and often not the first choice of each step.",
         ("14",)),
    Myth(_TRAINING, "The embeddings are ready-made word vectors", "wrong",
         "They start at random and learn with the rest; the same matrix gives the logits.",
         ("10",)),
    Myth(_TRAINING, "Encoder and decoder must be equally deep", "wrong",
         "The decoder reads the top of the encoder, whatever its height.", ("11",)),
    Myth(_TRAINING, "Label smoothing costs nothing", "half true",
         "It gains some accuracy, and takes confidence away, also where it was deserved.",
         ("13", "18")),
    Myth(_TRAINING, "A wider beam translates better", "half true",
         "Up to a width of 2 to 4. Wider ones find more probable translations that are no better.",
         ("14",)),
    Myth(_TRAINING, "A bigger model is better", "half true",
         "Where data and training suit it. In our rerun the largest comes out last.", ("18",)),
    Myth(_TRAINING, "TFAutoModel comes from TensorFlow Hub", "wrong",
         "It was a class of the Transformers library, and loaded from the Hugging Face Hub.",
         ("23",)),
    Myth(_PAPER, "The paper shows that dividing the scores helps", "wrong",
         "No row of its tables leaves the division out; the reason given is a suspicion.", ("04",)),
    Myth(_PAPER, "The paper normalises before each sub-layer", "true of something else",
         "After the sum. Before it is what its authors' later code does.", ("09", "21")),
    Myth(_PAPER, "The paper drops attention weights", "true of something else",
         "In its parsing model only. Its translators drop sub-layer outputs and embeddings.",
         ("13", "21")),
    Myth(_PAPER, "The vocabulary has 37000 tokens", "half true",
         "The text says so; the table's parameter counts fit about 41,000.", ("10",)),
    Myth(_PAPER, "The wavelengths end at 10000 times 2 pi", "true of something else",
         "Those of the code do. The printed formula ends 3.5 % earlier.", ("07",)),
    Myth(_PAPER, "The base model beat all systems before it", "half true",
         "From English to German. To French it is below every one in the table.", ("17",)),
    Myth(_PAPER, "The big model reached 41 BLEU from English to French", "half true",
         "The text says so; the table has 41.8, and only that beats all ensembles.", ("17",)),
    Myth(_PAPER, "Table 2 counts the operations that training took", "half true",
         "It counts what the hardware could have done in that time, some three times as much.",
         ("16",)),
    Myth(_PAPER, "A BLEU of 28 means the same everywhere", "wrong",
         "The way to count alone moves it, in published cases by up to three points.", ("17",)),
)  # fmt: skip


class Overview(Table):
    """All statements in a table: verdict, truth, and links to the section and to the chapters.

    Args:
        myths: in the order of the table.

    Raises:
        KeyError: if a statement names a chapter that is not in :data:`CHAPTERS`.
    """

    def __init__(self, myths: Iterable[Myth] = MYTHS):
        self.myths = tuple(myths)
        header = ["one says", "verdict", "what is so", "chapters"]
        rows = [
            (m.said, m.verdict, m.truth, ", ".join(_page(n)[0] for n in m.chapters))
            for m in self.myths
        ]
        super().__init__(header, rows)

    def _repr_html_(self) -> str:
        def cells(*contents: str) -> str:
            style = 'style="text-align:left"'
            return "".join(f"<td {style}>{content}</td>" for content in contents)

        lines, theme = [], None
        for m in self.myths:
            if m.theme != theme:
                theme = m.theme
                lines.append(f'<tr><th colspan="4" style="text-align:left">{theme}</th></tr>')
            said = f'<a href="#{m.anchor}">{m.said}</a>'
            pages = ", ".join('<a href="{1}">{0}</a>'.format(*_page(n)) for n in m.chapters)
            lines.append(f"<tr>{cells(said, m.verdict, escape(m.truth), pages)}</tr>")
        before, _, rest = super()._repr_html_().partition("<tbody>")
        return f"{before}<tbody>{''.join(lines)}</tbody>{rest.partition('</tbody>')[2]}"


def _page(number: str) -> tuple[str, str]:
    """Return the number of a chapter without a leading zero, and its page in the built book."""
    return str(int(number)), f"{CHAPTERS[number]}.html"
