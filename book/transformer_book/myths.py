"""Common statements about the Transformer: what is true, and which chapter shows it.

The chapter on them tests some itself; for the others it links to the chapter with the evidence.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Literal, get_args

from transformer_book.tables import Table, html_table

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
        "08_feed_forward", "09_depth", "10_embeddings", "11_assembly", "14_objective",
        "15_recipe", "16_decoding", "17_translation", "18_table_1", "19_table_3",
        "21_heads_learned", "22_left_out", "23_memory", "24_sparse_and_recurrent",
        "25_beyond_translation", "27_full_model",
    )
}  # fmt: skip


@dataclass(frozen=True)
class Myth:
    """A common statement about the Transformer."""

    theme: Theme  #: its group in the table.
    said: str  #: the statement.
    #: "wrong"; "half true", which needs a condition; or "true of something else", of another part,
    #: model or text than the one it is said about.
    verdict: Verdict
    truth: str  #: the correct statement, in a sentence.
    #: words from the evidence, found in the first chapter that is named. A statement with an
    #: experiment of its own has none.
    shown: str
    #: numbers of the chapters that explain more, such as "07"; the one with the evidence comes
    #: first.
    chapters: tuple[str, ...]
    #: heading of its experiment in the chapter on such statements, if it has one.
    question: str = ""

    def __post_init__(self) -> None:
        if bool(self.shown) == bool(self.question):
            raise ValueError(f"{self.said!r} must have either evidence or an experiment")
        if self.question and not re.fullmatch(r"[A-Z][a-z]*( [A-Za-z]+)*\?", self.question):
            raise ValueError(f"question must be plain words and a mark, got {self.question!r}")

    @property
    def anchor(self) -> str:
        """Anchor of its experiment, without the hash; empty if it has none."""
        return self.question.lower().replace(" ", "-").rstrip("?")


_ATTENTION, _HEADS, _MASKS, _POSITIONS, _COST, _TRAINING, _PAPER = get_args(Theme)

#: By theme; those with a question in the order of the chapter.
MYTHS = (
    Myth(_ATTENTION, "The attention weights are learned parameters", "wrong",
         "They are computed anew for every sentence. Only the matrices that compute them are "
         "learned.", "",
         ("02",), "Are attention weights parameters?"),
    Myth(_ATTENTION, "Every word receives the same amount of attention", "wrong",
         "The weights that a position gives sum to 1; those that it receives can sum to less "
         "or more.", "",
         ("02",), "Does each word receive as much as it gives?"),
    Myth(_ATTENTION, "A word attends most to itself", "half true",
         "In the encoder of our translator it rarely does; in some heads of the decoder it "
         "often does.",
         "", ("21",), "Does a word attend most to itself?"),
    Myth(_ATTENTION, "In self-attention the key and the value are the same", "wrong",
         "They come from the same vectors, through two different matrices.", "",
         ("02",), "Are keys and values the same?"),
    Myth(_ATTENTION, "Keys and values are the word embeddings", "wrong",
         "They are projections of the layer's input, and only the first layer reads embeddings.",
         "",
         ("02", "10"), "Are keys and values word embeddings?"),
    Myth(_ATTENTION, "The encoder hands one set of keys and values to the decoder", "wrong",
         "It hands over vectors, from which every decoder layer computes its own keys and values.",
         "", ("11",), "Is one set of keys and values enough?"),
    Myth(_ATTENTION, "A Transformer consists of attention only", "half true",
         "Only attention moves information between positions. But in the paper's base model, 70% "
         "of the parameters are elsewhere.",
         "",
         ("08", "11"), "Is attention all that it needs?"),
    Myth(_ATTENTION, "Scaled means that the softmax scales the output", "wrong",
         "The scores are divided by the square root of d_k, before the softmax.",
         "how widely dot products spread", ("04", "02")),
    Myth(_ATTENTION, "The scores are divided by the number of dimensions", "wrong",
         "They are divided by the square root of the size of the keys, d_k.",
         "square root of the number of terms", ("04",)),
    Myth(_ATTENTION, "The divisor is the square root of the size of queries, keys and values",
         "half true",
         "Only the size of queries and keys counts. Values may have another size.",
         "the root is the size of a *key*", ("04", "05")),
    Myth(_ATTENTION, "Every token has weight matrices of its own", "wrong",
         "All positions share one set of matrices; each head and each layer has its own.",
         "The same network at every position", ("08", "02")),
    Myth(_ATTENTION, "Self-attention is invariant to shuffling", "true of something else",
         "It is equivariant: its outputs are shuffled in the same way. "
         "Shuffling only the key-value pairs changes nothing.",
         "shuffled queries give the same outputs", ("02", "07")),
    Myth(_ATTENTION, "The Transformer invented attention", "wrong",
         "Recurrent translators used it before. What was new is a translator that connects "
         "positions by attention alone.", "Bahdanau attention", ("01", "17")),
    Myth(_ATTENTION, "An attention map explains the prediction", "half true",
         "Averaged over heads, it is some evidence. Most heads' weights can be shuffled at "
         "little cost.",
         "Is attention an explanation?", ("21",)),
    Myth(_HEADS, "A head is a row of the weight matrix, one for each interpretation", "wrong",
         "A head has its own three projections, and training decides what it reads.",
         "One head for each meaning?", ("21", "05")),
    Myth(_HEADS, "Every head learns a role of its own", "half true",
         "Some have a clear role. Removing a single head usually costs little.",
         "median of 36 heads", ("21",)),
    Myth(_HEADS, "The purpose of several heads is a longer range", "wrong",
         "One head reaches every position. Several heads can read from several places at once.",
         "What an average loses", ("05",)),
    Myth(_HEADS, "Eight heads cost eight times as much as one", "wrong",
         "They split d_model between them, with the same number of parameters and multiplications.",
         "Parameters and multiplications stay the same", ("05",)),
    Myth(_HEADS, "The more heads the better", "half true",
         "In the paper's Table 3, 16 heads score the same BLEU as 8, and 32 score less. In our "
         "runs, the comparison with 32 is undecided.",
         "too many heads are worse", ("19", "05")),
    Myth(_MASKS, "Padding with zeros needs no mask", "wrong",
         "A score of 0 does not give a weight of 0.", "", ("06",), "Do zeros need a mask?"),
    Myth(_MASKS, "A position must not see itself", "wrong",
         "It may: its input is the token before the one that it predicts.", "",
         ("06",), "May a position see itself?"),
    Myth(_MASKS, "In training, too, the decoder works word by word", "true of something else",
         "It does when it translates. In training, one pass computes all positions at once.", "",
         ("06", "14", "16"), "Does training go word by word?"),
    Myth(_MASKS, "The mask hides the following positions because they hold garbage", "wrong",
         "In training they hold the right answer, and the mask prevents copying it.",
         "a model that sees the answer", ("06",)),
    Myth(_MASKS, "The causal mask halves the work", "true of something else",
         "In the formula, a mask hides scores after they are computed. Kernels for causal "
         "attention skip hidden blocks, which saves up to half.",
         "A mask saves nothing", ("24", "23")),
    Myth(_MASKS, "Padding must be masked as a query, too", "wrong",
         "Only as a key. No real position reads what a padding position computes.",
         "hiding padding as a *query*", ("06",)),
    Myth(_POSITIONS, "The paper puts sines on the left and cosines on the right",
         "true of something else",
         "The paper alternates them; its code has halves. The model can learn the same with both.",
         "the halves were back", ("07",)),
    Myth(_POSITIONS, "The model learns the pattern of the sinusoids", "wrong",
         "They are a fixed table without parameters.",
         "The table has no parameters", ("07",)),
    Myth(_POSITIONS, "Concatenated positions would overflow the integers", "wrong",
         "Sines are at most 1 either way. What concatenation costs is width and parameters.",
         "Concatenation would work as well", ("07",)),
    Myth(_POSITIONS, "Sinusoids let the model read longer sentences", "half true",
         "The table can be continued, but what was learned at its beginning may not carry over.",
         "longer than any in training", ("07",)),
    Myth(_POSITIONS, "Without positional encodings there is no order", "half true",
         "True of the encoder. In the decoder, the causal mask reveals some of the order.",
         "A decoder without positions keeps some order", ("07",)),
    Myth(_COST, "Convolutions are slow", "wrong",
         "They compute all positions at once, but need several layers to connect distant ones.",
         "sequential operations", ("18", "01")),
    Myth(_COST, "With convolutions, the operations between two words grow exponentially with "
         "their distance", "wrong",
         "They grow linearly or logarithmically; with attention they are constant.",
         "maximum path length", ("18", "01")),
    Myth(_COST, "With a path of one step nothing is forgotten", "half true",
         "Every position is within reach, but one lookup can keep only so many entries apart.",
         "how many entries can one lookup keep apart", ("02", "01")),
    Myth(_COST, "Self-attention is cheaper than recurrence", "half true",
         "Counting multiplications, a whole layer is cheaper than a GRU if n < d; a plain "
         "recurrence is always cheaper.",
         "rival is a GRU", ("18", "01")),
    Myth(_COST, "A Transformer writes all words at once", "true of something else",
         "It reads the source at once, and trains on all positions at once. It writes token by "
         "token.",
         "Encode once, decode once per token", ("11", "16")),
    Myth(_COST, "Transformer-XL divides the text hierarchically", "wrong",
         "It reads segment by segment, and attends to the stored states of the previous segment.",
         "the states of the previous segment", ("24",)),
    Myth(_COST, "Half precision, accumulation and checkpointing lift the quadratic cost", "wrong",
         "They change only the factor. Fused attention removes the square, but only from the "
         "memory.",
         "never store the square", ("23", "18")),
    Myth(_TRAINING, "The last linear layer gives probabilities", "wrong",
         "It gives logits, which can be any real numbers. The softmax turns them into "
         "probabilities.",
         "which can be any real numbers", ("10",)),
    Myth(_TRAINING, "The softmax picks the word", "half true",
         "It gives every token a probability. The search picks, and a beam search need not pick "
         "the most probable token of each step.", "a more probable text", ("16",)),
    Myth(_TRAINING, "The embeddings are ready-made word vectors", "wrong",
         "They start as random numbers and are learned with the rest of the network.",
         "The rows start as random numbers", ("10",)),
    Myth(_TRAINING, "Encoder and decoder must be equally deep", "wrong",
         "Every decoder layer reads the output of the last encoder layer, whatever the depth.",
         "need not be equally deep", ("11",)),
    Myth(_TRAINING, "Label smoothing costs nothing", "half true",
         "Our models gain 0.3 and 0.8 points of accuracy. But the one trained on more text becomes "
         "underconfident, and its perplexity rises by 3%.",
         "underconfident", ("14", "19")),
    Myth(_TRAINING, "A wider beam translates better", "half true",
         "In our models of captions, a beam of 5 scores 0.4 to 2.2 BLEU above greedy search. On "
         "the shipped translator's test sentences, no beam does measurably, and wider beams change "
         "nothing that we could measure.",
         "wider beams change nothing", ("16",)),
    Myth(_TRAINING, "A bigger model is better", "half true",
         "Often, but in the paper's own Table 3 eight layers score 0.3 BLEU less than six.",
         "eight layers score 0.3 BLEU less than six", ("19",)),
    Myth(_TRAINING, "TFAutoModel comes from TensorFlow Hub", "wrong",
         "It was a class of the library transformers, and it loaded from the Hugging Face Hub.",
         "TFAutoModel", ("25",)),
    Myth(_PAPER, "The paper shows that dividing the scores helps", "wrong",
         "No row of its tables leaves the division out, and the authors only suspect the reason.",
         "Table 3 has no row without the division", ("04",)),
    Myth(_PAPER, "The paper normalises before each sub-layer", "true of something else",
         "It normalises after the residual sum. Its authors' later code normalises before.",
         "in October 2017 pre-norm became its default", ("09", "22")),
    Myth(_PAPER, "The paper drops attention weights", "true of something else",
         "Its text mentions that for parsing only. Its translators drop sub-layer outputs and "
         "the sums of embeddings and positions.",
         "the attention weights and the hidden units after the ReLU", ("15", "22")),
    Myth(_PAPER, "The vocabulary has 37000 tokens", "half true",
         "About 37000 by the text. Ten of eleven parameter counts of Table 3 fit about 41,000, and "
         "the eleventh about 36,000.",
         "40,960", ("10",)),
    Myth(_PAPER, "The wavelengths end at 10000 times 2 pi", "wrong",
         "In the printed formula, the longest is 3.5% shorter. Those of the code reach that end.",
         "longest wavelength is 3.5% shorter", ("07",)),
    Myth(_PAPER, "The base model beat all systems before it", "half true",
         "From English to German it did. From English to French it is below all others in Table 2.",
         "English-French: base surpasses all", ("17",)),
    Myth(_PAPER, "The big model reached 41 BLEU from English to French", "wrong",
         "In the last version, the text says 41.0, and the abstract and the table 41.8. Only the "
         "latter is above all ensembles.",
         "big reaches 41.0", ("17",)),
    Myth(_PAPER, "Table 2 counts the operations that training took", "half true",
         "It multiplies the training time by the number of GPUs and an assumed rate per GPU.",
         "hardware time", ("17", "27")),
    Myth(_PAPER, "A BLEU of 28 means the same everywhere", "wrong",
         "Tokenisation alone moves the score, in the published cases that we list by up to 2.9.",
         "one output, many scores", ("17",)),
)  # fmt: skip


class Overview(Table):
    """All statements in a table: verdict, truth, and links to the experiment or the chapters.

    Each theme is a table of its own that folds away; nothing needs a script.
    """

    def __init__(self, myths: Iterable[Myth] = MYTHS):
        self.myths = tuple(myths)
        header = ["statement", "verdict", "what is true", "where"]
        rows = [
            (m.said, m.verdict, m.truth, ", ".join(_page(n)[0] for n in m.chapters))
            for m in self.myths
        ]
        super().__init__(header, rows)

    def _repr_html_(self) -> str:
        parts = []
        for theme in dict.fromkeys(m.theme for m in self.myths):
            group = [m for m in self.myths if m.theme == theme]
            rows = [(escape(m.said), m.verdict, escape(m.truth), _where(m)) for m in group]
            inside = html_table(self.header, rows)
            parts.append(
                f'<details class="statements"><summary><strong>{theme}</strong> '
                f"({len(group)})</summary>{inside}</details>"
            )
        return "".join(parts)


class Quiz(Table):
    """The statements that have an experiment, each with a verdict that opens at a click."""

    def __init__(self, myths: Iterable[Myth] = MYTHS):
        self.myths = [m for m in myths if m.question]
        super().__init__(["statement", "verdict"], [(m.said, m.verdict) for m in self.myths])

    def _repr_html_(self) -> str:
        rows = [
            (
                escape(m.said),
                "<details><summary>your guess?</summary>"
                f'<strong>{m.verdict}</strong>: <a href="#{m.anchor}">see why</a></details>',
            )
            for m in self.myths
        ]
        return html_table(self.header, rows)


def _page(number: str) -> tuple[str, str]:
    """Return the number of a chapter without a leading zero, and its page in the built book."""
    return str(int(number)), f"{CHAPTERS[number]}.html"


def _where(myth: Myth) -> str:
    """Write the links of a statement: to its experiment, and to the chapters."""
    links = ['<a href="{1}">{0}</a>'.format(*_page(n)) for n in myth.chapters]
    if myth.question:
        links.insert(0, f'<a href="#{myth.anchor}">here</a>')
    return ", ".join(links)
