"""The places of the paper that can be pointed at, and how a text names them.

Paper: all sections
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """A numbered section of the paper, or an equation, table, figure or footnote in one.

    Args:
        key: such as "3.2.1", "Eq. (1)", "Table 3", "Figure 1", "footnote 4".
        title: the section's heading, or what the other kinds show.
        says: what stands there, in a sentence.
        section: the section that an equation, table, figure or footnote belongs to.
        names: public names that belong here though their docstrings do not say so: the formulas
            that the paper does not number.
        chapters: notebooks that treat it though their tables do not say so.

    Paper: all sections
    """

    key: str
    title: str
    says: str = ""
    section: str = ""
    names: tuple[str, ...] = ()
    chapters: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        """The target of a link to it.

        Paper: all sections
        """
        return "paper-" + re.sub(r"\W+", "-", self.key.lower()).strip("-")


_MODEL = "transformer.model."

#: In the order of the paper.
PLACES = (
    Place("Abstract", "Abstract", "A model of attention alone, its scores and its cost."),
    Place("1", "Introduction", "Recurrence cannot be computed in parallel within an example."),
    Place("2", "Background", "Models with convolutions or memories, and what they cost to relate "
          "distant positions."),
    Place("3", "Model Architecture", "An encoder and a decoder; one token at a time comes out.",
          chapters=("11_assembly",)),
    Place("Figure 1", "the architecture", section="3",
          names=(_MODEL + "transformer.Transformer",), chapters=("11_assembly",)),
    Place("3.1", "Encoder and Decoder Stacks", "Six layers each, residual sums, layer norms, and "
          "a mask over later positions."),
    Place("LayerNorm(x + Sublayer(x))", "not numbered", section="3.1",
          names=(_MODEL + "layers.Residual",), chapters=("09_depth",)),
    Place("3.2", "Attention", "A query and pairs of key and value give a weighted sum."),
    Place("Figure 2", "scaled dot-product attention, and several heads", section="3.2",
          names=(_MODEL + "attention.scaled_dot_product_attention",
                 _MODEL + "attention.MultiHeadAttention"),
          chapters=("02_attention", "06_heads")),
    Place("3.2.1", "Scaled Dot-Product Attention", "Dot products, divided, then a softmax; "
          "additive attention for comparison."),
    Place("Eq. (1)", "softmax(Q Kᵀ / √d_k) V", section="3.2.1", chapters=("02_attention",)),
    Place("footnote 4", "the variance of a dot product is d_k", section="3.2.1",
          chapters=("04_scaling",)),
    Place("3.2.2", "Multi-Head Attention", "Several smaller attentions side by side, each with "
          "its own projections."),
    Place("MultiHead(Q, K, V)", "not numbered", section="3.2.2",
          names=(_MODEL + "attention.MultiHeadAttention",), chapters=("06_heads",)),
    Place("3.2.3", "Applications of Attention in our Model", "Encoder-decoder attention, and "
          "self-attention in both stacks, masked in the decoder."),
    Place("3.3", "Position-wise Feed-Forward Networks", "Two linear maps with a ReLU between, "
          "the same at each position."),
    Place("Eq. (2)", "max(0, x W₁ + b₁) W₂ + b₂", section="3.3", chapters=("08_feed_forward",)),
    Place("3.4", "Embeddings and Softmax", "One matrix for both embeddings and the output; "
          "embeddings times √d_model."),
    Place("3.5", "Positional Encoding", "Sines and cosines are added, so that order is seen."),
    Place("PE(pos, 2i), PE(pos, 2i + 1)", "not numbered", section="3.5",
          names=(_MODEL + "positional.sinusoidal_table",
                 _MODEL + "positional.SinusoidalPositionalEncoding"),
          chapters=("07_positions",)),
    Place("4", "Why Self-Attention", "Work in a layer, steps that must wait, and the longest "
          "path, compared; and what heads look at."),
    Place("Table 1", "complexity, sequential operations, path length", section="4",
          chapters=("15_table_1",)),
    Place("Figure 3", "a long-distance dependency", section="4", chapters=("20_heads_learned",)),
    Place("Figure 4", "two heads and a pronoun", section="4", chapters=("20_heads_learned",)),
    Place("Figure 5", "two heads and the structure of a sentence", section="4",
          chapters=("20_heads_learned",)),
    Place("5", "Training", "The recipe.", chapters=("13_recipe", "16_training")),
    Place("5.1", "Training Data and Batching", "WMT 2014, byte pairs and word-pieces, about "
          "25,000 tokens of each language a batch."),
    Place("5.2", "Hardware and Schedule", "Eight P100, 12 hours or 3.5 days."),
    Place("5.3", "Optimizer", "Adam, with a rate that climbs and then falls."),
    Place("Eq. (3)", "the learning rate", section="5.3", chapters=("13_recipe",)),
    Place("5.4", "Regularization", "Dropout on sub-layers and sums, and label smoothing."),
    Place("6", "Results", "Translation, one choice at a time, and parsing.",
          chapters=("17_translation", "18_table_3", "19_parsing")),
    Place("6.1", "Machine Translation", "The scores, the averaged checkpoints, the beam."),
    Place("Table 2", "BLEU and training cost", section="6.1", chapters=("17_translation",)),
    Place("footnote 5", "how fast four kinds of GPU are taken to be", section="6.1",
          chapters=("16_training",)),
    Place("6.2", "Model Variations", "Heads, sizes, dropout, smoothing, positions: what each is "
          "worth."),
    Place("Table 3", "variations of the architecture", section="6.2", chapters=("18_table_3",)),
    Place("6.3", "English Constituency Parsing", "The same model writes parse trees."),
    Place("Table 4", "parsing, F1 on section 23", section="6.3", chapters=("19_parsing",)),
    Place("7", "Conclusion", "Plans: other kinds of input, attention to a neighbourhood only, "
          "and less of one token after another.",
          names=("transformer.lab.table_1.operations.sequential_steps",),
          chapters=("15_table_1", "22_long_sequences", "23_beyond_translation")),
)  # fmt: skip

BY_KEY = {place.key: place for place in PLACES}
SECTIONS = tuple(place.key for place in PLACES if not place.section)
#: Said by what belongs to no place more than to another.
WHOLE = "all sections"

_NUMBER = r"\d(?:\.\d){0,2}"
_AND = r"(?:\s*,\s*|\s+and\s+|\s+to\s+)"


def is_outside(text: str) -> bool:
    """Whether a text behind ``Paper:`` says that the name has no place in the paper.

    Paper: all sections
    """
    return text.startswith("not in the paper")


def places(text: str) -> tuple[str, ...]:
    """Read which places a text behind ``Paper:`` names.

    What stands in brackets does not count, nor a clause that names another paper ("et al.").

    Args:
        text: such as "section 3.2.1, Eq. (1)", "sections 5.1 to 5.4", "Table 3 (D)".

    Returns:
        Keys of :data:`PLACES`, or :data:`WHOLE` alone, in the order of the paper; none if the text
        says "not in the paper".

    Raises:
        ValueError: if it names no place, or one that the paper does not have.

    Paper: all sections
    """
    if is_outside(text):
        return ()
    if text.startswith(WHOLE):
        return (WHOLE,)
    plain = re.sub(r"Eq\. \((\d)\)", r"Eq. <\1>", text)
    plain = re.sub(r"\([^)]*\)", "", plain)
    plain = re.sub(r"(?:^|[,;])[^,;]*et al\.[^;]*", "", plain)
    found = [key for run in re.findall(rf"[Ss]ections? ({_NUMBER}(?:{_AND}{_NUMBER})*)", plain)
             for key in _run(run)]  # fmt: skip
    for kind in ("Table", "Figure"):
        for run in re.findall(rf"{kind}s? (\d(?:{_AND}\d)*)", plain):
            found += [f"{kind} {number}" for number in _run(run)]
    found += [f"Eq. ({number})" for number in re.findall(r"Eq\. <(\d)>", plain)]
    found += [f"footnote {number}" for number in re.findall(r"[Ff]ootnote (\d)", plain)]
    return _known(found, text)


def places_of_row(says: str) -> tuple[str, ...]:
    """Read the places from the first cell of a row that ends a chapter.

    Args:
        says: such as "6.2, Table 3 (A): one head is worse", "Eq. (1)".

    Returns:
        Keys of :data:`PLACES`; none if the row names no place.

    Raises:
        ValueError: if the paper does not have such a place.

    Paper: all sections
    """
    found = []
    for piece in says.partition(": ")[0].split(","):
        start = re.match(rf"(Abstract|{_NUMBER})(?:$|[:\s])", piece.strip())
        if start:
            found.append(start[1])
        else:
            named = re.match(r"(?:Eq\.|Tables?|Figures?|Footnote) .*", piece.strip())
            found += places(named[0]) if named else []
    return _known(found, says) if found else ()


def _run(text: str) -> list[str]:
    """The numbers of "1, 2 and 4" or "5.1 to 5.4"."""
    numbers: list[str] = []
    for joint, number in re.findall(rf"({_AND}|^)({_NUMBER})", text):
        if joint.strip() == "to":
            head, _, last = number.rpartition(".")
            first = int(numbers[-1].rpartition(".")[2]) + 1
            numbers += [f"{head}.{i}" if head else str(i) for i in range(first, int(last) + 1)]
        else:
            numbers.append(number)
    return numbers


def _known(found: list[str], text: str) -> tuple[str, ...]:
    unknown = [key for key in found if key not in BY_KEY]
    if unknown or not found:
        raise ValueError(f"no place of the paper in {text!r}: {', '.join(unknown) or 'none named'}")
    return tuple(sorted(set(found), key=list(BY_KEY).index))
