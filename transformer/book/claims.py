"""The claims ledger: what the paper claims, where it is tested, what was measured, and the verdict.

The measured figures are not written here. Each chapter ends with a table of what the paper says and
what was found; the ledger picks its rows from those tables as the notebooks store them. What is
written here is the claim, which rows speak about it, and the judgement.

Paper: all sections
"""

import html
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from transformer.book.tables import Table

Verdict = Literal["holds", "holds in part", "does not show at this scale", "wrong as printed"]

#: Heading of the table's section in every chapter, and the anchor that it becomes.
SECTION = "The paper, and what we measured"
ANCHOR = "the-paper-and-what-we-measured"

# What the paper says, what was measured, where they differ.
Row = tuple[str, str, str]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper that can come out wrong.

    Args:
        section: of the paper.
        text: what it says, in short.
        verdict: what the evidence makes of it.
        evidence: (chapter, beginning of a row's first cell) of the rows that speak about it; the
            chapter by its number, such as "07".

    Paper: all sections
    """

    section: str
    text: str
    verdict: Verdict
    evidence: tuple[tuple[str, str], ...]


#: In the order of the paper.
CLAIMS = (
    Claim("1", "Recurrence is sequential within an example", "holds",
          (("01", "1: recurrence is sequential"),)),
    Claim("1", "Attention had been used with recurrent networks, which it helps", "holds",
          (("01", "1: attention is used with a recurrent network"),)),
    Claim("Abstract, 2", "The model is based solely on attention mechanisms", "holds in part",
          (("08", "1: based solely on attention"), ("11", "Abstract: based solely"))),
    Claim("2", "Averaging reduces the effective resolution", "holds",
          (("01", "2: averaging reduces"), ("02", "2: averaging reduces"))),
    Claim("3.1", "Six layers; two sub-layers in the encoder's, three in the decoder's", "holds",
          (("11", "3.1: six layers"),)),
    Claim("3.1", "Each sub-layer gives LayerNorm(x + Sublayer(x))", "holds",
          (("09", "3.1: LayerNorm"), ("11", "3.1: LayerNorm"))),
    Claim("3.1", "Predictions depend only on outputs at earlier positions", "holds",
          (("05", "3.1: masking keeps"), ("11", "3.1: predictions at i"))),
    Claim("3.2", "Attention gives a weighted sum of the values", "holds",
          (("02", "3.2: the output is"), ("02", "3.2: a query is mapped"), ("02", "Eq. (1)"))),
    Claim("3.2.1", "Additive and dot-product attention cost about the same in theory", "holds",
          (("03", "3.2.1: the two are similar"),)),
    Claim("3.2.1", "Dot-product attention is in practice faster and takes less space", "holds",
          (("03", "3.2.1: dot-product attention is much faster"),
           ("03", "3.2.1: dot-product attention is more space"))),
    Claim("3.2.1", "Without scaling, both perform similarly for small d_k", "holds",
          (("03", "3.2.1: for small d_k"),)),
    Claim("3.2.1", "Without scaling, additive attention is better for large d_k", "holds",
          (("03", "3.2.1: for large d_k"),)),
    Claim("3.2.1, footnote 4", "A dot product has mean 0 and variance d_k", "holds",
          (("04", "Footnote 4"),)),
    Claim("3.2.1", "Large products push the softmax to extremely small gradients (suspected)",
          "holds in part", (("04", "3.2.1: the authors suspect"),)),
    Claim("3.2.1", "Dividing by the square root of d_k counteracts that", "holds in part",
          (("04", "3.2.1: hence the division"), ("04", "Table 3 has no row"))),
    Claim("3.2.2", "One head's averaging inhibits attending to several places", "holds",
          (("06", "3.2.2: with a single head"),)),
    Claim("3.2.2", "Several small heads cost about as much as one large one", "holds",
          (("06", "3.2.2: total cost"),)),
    Claim("3.2.3", "Attention is used in three ways", "holds",
          (("11", "3.2.3: three uses"), ("02", "3.2.3: in self-attention"))),
    Claim("3.2.3", "A position sees those up to and including itself; the rest is -inf", "holds",
          (("05", "3.2.3: up to and including"), ("05", "3.2.3: illegal connections"))),
    Claim("3.3", "The feed-forward layer is the same everywhere: two convolutions of kernel 1",
          "holds", (("08", "3.3, Eq. (2)"), ("08", "3.3: the same at each"))),
    Claim("3.4", "One matrix is shared by both embeddings and the output", "holds",
          (("10", "3.4: one matrix"), ("21", "3.4: one matrix"))),
    Claim("3.4", "Embeddings are multiplied by the square root of d_model", "holds",
          (("10", "3.4: embeddings are multiplied"),)),
    Claim("3.5", "Without positional encodings there is no order", "holds in part",
          (("07", "3.5: without recurrence"),)),
    Claim("3.5", "Wavelengths go from 2π to 10000 · 2π", "wrong as printed",
          (("07", "3.5: wavelengths"), ("21", "3.5: sine and cosine"))),
    Claim("3.5", "PE(pos + k) is a linear function of PE(pos)", "holds",
          (("07", "3.5: PE(p+k)"),)),
    Claim("3.5", "Sinusoids may extrapolate to longer sequences (a hope)",
          "does not show at this scale",
          (("07", "3.5: sinusoids may extrapolate"), ("22", "3.5: sinusoids may extrapolate"))),
    Claim("4, Table 1", "Self-attention is O(n² d) a layer, recurrence O(n d²)", "holds in part",
          (("01", "4, Table 1: self-attention O"), ("15", "Table 1: self-attention costs"),
           ("22", "4: O(n² d) a layer"))),
    Claim("4, Table 1", "Self-attention takes O(1) sequential operations, recurrence O(n)", "holds",
          (("15", "Table 1: sequential operations"),)),
    Claim("4", "Self-attention is faster than recurrence when n < d", "holds in part",
          (("01", "4: self-attention is faster"), ("15", "4: faster than recurrence"))),
    Claim("4, Table 1", "The longest path is O(n), O(log n), O(1)", "holds",
          (("01", "4, Table 1: path"), ("15", "Table 1: path"))),
    Claim("4", "Restricted attention saves, and lengthens the path to O(n / r)", "holds",
          (("22", "4: a neighbourhood"), ("22", "4: the path grows"))),
    Claim("4", "Convolutions are dearer than recurrence by a factor of k", "holds in part",
          (("15", "4: convolutions dearer"),)),
    Claim("4", "A separable convolution with k = n costs as much as attention and feed-forward",
          "holds in part", (("15", "4: separable, k = n"),)),
    Claim("4", "Heads learn to perform different tasks", "holds in part",
          (("06", "4: heads learn"), ("20", "4: heads learn"))),
    Claim("4, Figures 3 to 5", "Heads show behaviour related to syntax", "holds in part",
          (("20", "4, Figures 3 to 5"),)),
    Claim("Figure 4", "Heads are apparently involved in anaphora resolution",
          "does not show at this scale", (("20", "Figure 4: heads"),)),
    Claim("4", "Self-attention could yield more interpretable models", "holds in part",
          (("20", "4: self-attention could"),)),
    Claim("5.1", "A shared vocabulary of about 37000 tokens", "wrong as printed",
          (("10", "5.1: a vocabulary"), ("12", "5.1: byte-pair encoding"))),
    Claim("5.1", "Pairs of like length are batched together", "holds",
          (("12", "5.1: pairs batched"),)),
    Claim("5.3", "The rate climbs for 4,000 steps, then falls: Eq. (3)", "holds in part",
          (("13", "5.3: Eq. (3)"), ("09", "5.3: warm-up"), ("21", "5.3: a rate"))),
    Claim("5.3", "Adam with beta2 = 0.98", "does not show at this scale",
          (("13", "5.3: beta2"),)),
    Claim("5.4, Table 3 (D)", "Dropout helps", "holds in part",
          (("13", "5.4, Table 3 (D): without dropout"), ("18", "6.2, (D)"))),
    Claim("5.4", "Label smoothing hurts perplexity and improves accuracy and BLEU", "holds in part",
          (("13", "5.4: smoothing hurts"), ("18", "5.4, (D)"), ("21", "5.4: label smoothing"))),
    Claim("6.1", "The mean of the last checkpoints", "holds",
          (("13", "6.1: mean of the last"),)),
    Claim("6.1", "A beam of 4 with length penalty 0.6", "holds in part",
          (("14", "6.1: a beam of 4"), ("14", "6.1: length penalty"))),
    Claim("6.1", "Outputs of at most input length + 50, ended early when possible", "holds",
          (("14", "6.1: output of at most"), ("14", "6.1: terminate early"))),
    Claim("6.1, Table 2", "Base and big surpass what was published before", "holds in part",
          (("17", "6.1: base and big"),)),
    Claim("6.1, Table 2", "... at a fraction of the training cost", "holds in part",
          (("17", "6.1: base at a fraction"),)),
    Claim("6.1", "Big reaches 41.0 BLEU, English to French (Table 2: 41.8)", "wrong as printed",
          (("17", "6.1: base and big"),)),
    Claim("Table 2", "3.3e18 FLOPs to train the base model", "holds in part",
          (("16", "Table 2: 3.3e18"),)),
    Claim("6.2, Table 3 (A)", "One head is worse than eight, and too many are worse, too",
          "holds in part", (("18", "6.2, (A)"), ("06", "6.2, Table 3 (A)"))),
    Claim("6.2, Table 3 (B)", "Smaller keys hurt", "holds",
          (("18", "6.2, (B)"), ("06", "6.2, Table 3 (B)"))),
    Claim("6.2, Table 3 (C)", "Bigger models are better", "holds in part",
          (("18", "6.2, (C)"),)),
    Claim("6.2, Table 3 (E)", "Learned positions give nearly the same results as sinusoids",
          "does not show at this scale", (("18", "6.2, (E)"), ("07", "3.5, Table 3 (E)"))),
    Claim("6.3, Table 4", "The Transformer generalises to constituency parsing", "holds in part",
          (("19", "6.3: the Transformer"), ("19", "Table 4: 91.3"))),
    Claim("6.3", "Recurrent sequence-to-sequence models do worse on little data",
          "does not show at this scale", (("19", "6.3: RNN"),)),
    Claim("6.3", "A beam of 21 with length penalty 0.3, for parsing", "does not show at this scale",
          (("19", "6.3: a beam of 21"),)),
    Claim("7", "It can be extended to inputs and outputs other than text (a plan)", "holds in part",
          (("23", "7: extend"), ("23", "7: images"))),
    Claim("Table 3", "big has 213 million parameters", "wrong as printed",
          (("10", "Table 3: big"),)),
)  # fmt: skip


def stored_rows(notebook: Path) -> list[Row]:
    """Read the rows of a chapter's table of what the paper says and what was measured.

    Args:
        notebook: a chapter with its stored outputs.

    Returns:
        All rows; none if the chapter has no such table.

    Raises:
        FileNotFoundError: if there is no such notebook.
    """
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    found: list[Row] = []
    for output in (output for cell in cells for output in cell.get("outputs", [])):
        table = "".join(output.get("data", {}).get("text/html", []))
        if "What the paper says" not in table:
            continue
        for line in re.findall(r"<tr>(.*?)</tr>", table.partition("<tbody>")[2], re.S):
            text = [re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<td.*?</td>", line, re.S)]
            says, measured, differ = map(html.unescape, text)
            found.append((says, measured, differ))
    return found


def chapters(folder: Path) -> dict[str, Path]:
    """Find the chapters of a folder by their two-digit numbers.

    Args:
        folder: of the notebooks.
    """
    return {path.name[:2]: path for path in sorted(folder.glob("[0-9][0-9]_*.ipynb"))}


def evidence_of(claim: Claim, rows: Mapping[str, Iterable[Row]]) -> list[tuple[str, Row]]:
    """Find the rows that speak about a claim.

    Args:
        claim: one of :data:`CLAIMS`.
        rows: of :func:`stored_rows`, by chapter.

    Returns:
        (chapter, row) for each piece of evidence.

    Raises:
        LookupError: if a piece is missing, or not one row only.
    """
    found = []
    for chapter, start in claim.evidence:
        fitting = [row for row in rows.get(chapter, ()) if row[0].startswith(start)]
        if len(fitting) != 1:
            raise LookupError(
                f"claim {claim.text!r}: chapter {chapter} has {len(fitting)} rows that begin with "
                f"{start!r}"
            )
        found.append((chapter, fitting[0]))
    return found


def render_claims(notebooks: Path, claims: Iterable[Claim] = CLAIMS) -> str:
    """Write the ledger as a page of the book.

    Args:
        notebooks: folder of the chapters, with their outputs.
        claims: in the order of the page.

    Raises:
        LookupError: if a claim has lost its evidence.

    Paper: all sections
    """
    paths, claims = chapters(notebooks), list(claims)
    rows = {chapter: stored_rows(path) for chapter, path in paths.items()}
    lines = []
    for claim in claims:
        for i, (chapter, (_, measured, differ)) in enumerate(evidence_of(claim, rows)):
            link = f"[{int(chapter)}](../notebooks/{paths[chapter].name}#{ANCHOR})"
            # The claim and its verdict stand once, beside the first piece of evidence.
            about = (claim.section, claim.text, f"**{claim.verdict}**") if i == 0 else ("", "", "")
            lines.append((*about, measured, differ, link))
    head = [
        "section",
        "the paper claims",
        "verdict",
        "measured here",
        "where they differ",
        "chapter",
    ]
    counts = [sum(claim.verdict == verdict for claim in claims) for verdict in get_args(Verdict)]
    said = "{} hold, {} hold in part, {} do not show at this scale, and {} are wrong as printed"
    return _PAGE.format(
        number=len(claims), counts=said.format(*counts), table=Table(head, lines).markdown()
    )


_PAGE = """# The claims of the paper, one by one

Does the paper hold? Here are its claims that an experiment of this book speaks about, {number} of
them, in the paper's order: {counts}.

**How to read it.** The column "measured here" is copied by a program from the table that ends the
chapter in the last column, as its notebook stores it. Numbers there are computed by the chapter or
asserted by one of its cells; the words beside them are the author's summary of the experiment
above. *Holds* means at the size and on the data of that chapter;
most of these are small. *Does not show at this scale* is no refutation. *Wrong as printed* means
that the paper's text disagrees with its own formula, table or code. The verdict is a judgement, by
hand, and the chapter has the experiment that it rests on.

{table}
**Not here**: that the model was the first to rely on self-attention alone (history); the hours on
eight P100 and the scores on newstest2014 (they need the paper's data and hardware); "three types of
regularization" (section 5.4 announces three and describes two, so there is nothing to test).
What the paper leaves open or does otherwise in its code is in the [departures](departures.md).

The page is generated: `python tools/make_claims.py`.
"""
