"""BLEU and chrF by sacreBLEU, never without the signature.

A BLEU score means something only together with the tokenisation and the options that made it; two
papers that both say "BLEU" may lie a whole point apart on the same output. The signature says
which BLEU it is, so it travels with the score.

Paper: section 6.1, Table 2
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sacrebleu.metrics import BLEU, CHRF


@dataclass(frozen=True)
class Score:
    """A score of a whole test set.

    Args:
        name: "BLEU", "chrF2", "chrF2++".
        score: 0 to 100, more is better.
        signature: sacreBLEU's record of how it was computed.

    Paper: section 6.1, Table 2
    """

    name: str
    score: float
    signature: str

    def __str__(self) -> str:
        return f"{self.name} {self.score:.2f} ({self.signature})"

    def to_dict(self) -> dict[str, str | float]:
        """The fields as a dictionary, for a recorded run.

        Paper: not in the paper
        """
        return asdict(self)


def bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    tokenize: str = "13a",
    lowercase: bool = False,
) -> Score:
    """Corpus BLEU: 1- to 4-grams shared with the reference, with a penalty for brevity.

    The paper's 27.3 and 28.4 are BLEU on tokenised text with split compounds, which sacreBLEU's
    default does not give; comparable systems lose about half a point by the change.

    Args:
        hypotheses: the translations.
        references: one reference for each.
        tokenize: "13a" for plain text, "none" for text that is tokenised already, or another of
            sacreBLEU's tokenisers.
        lowercase: whether to ignore case.

    Raises:
        ValueError: if there are no sentences, not as many of both, or no such tokeniser.

    Paper: section 6.1, Table 2
    """
    _check_pairs(hypotheses, references)
    if tokenize not in BLEU.TOKENIZERS:
        known = ", ".join(BLEU.TOKENIZERS)
        raise ValueError(f"tokenize must be one of {known}, got {tokenize!r}")
    # ``force`` only keeps sacreBLEU from warning that tokenised text looks tokenised.
    metric = BLEU(tokenize=tokenize, lowercase=lowercase, force=tokenize == "none")
    return _score(metric, hypotheses, references)


def chrf(
    hypotheses: Sequence[str],
    references: Sequence[str],
    word_order: int = 0,
    lowercase: bool = False,
) -> Score:
    """Corpus chrF: F-score of the character 1- to 6-grams, with recall counting twice.

    It needs no tokenisation and gives credit for half a word, so it says more than BLEU about
    languages rich in endings and compounds.

    Args:
        hypotheses: the translations.
        references: one reference for each.
        word_order: longest word n-gram to count besides; 2 is the metric called chrF++.
        lowercase: whether to ignore case.

    Raises:
        ValueError: if there are no sentences, not as many of both, or ``word_order`` is negative.

    Paper: not in the paper (BLEU alone hides too much at the scale of this book)
    """
    _check_pairs(hypotheses, references)
    if word_order < 0:
        raise ValueError(f"word_order must be at least 0, got {word_order}")
    return _score(CHRF(word_order=word_order, lowercase=lowercase), hypotheses, references)


def _score(metric: BLEU | CHRF, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    result = metric.corpus_score(list(hypotheses), [list(references)])
    return Score(result.name, float(result.score), str(metric.get_signature()))


def _check_pairs(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    for name, texts in (("hypotheses", hypotheses), ("references", references)):
        if isinstance(texts, str):
            raise TypeError(f"{name} must be a list of sentences, got one string")
    if len(hypotheses) != len(references):
        raise ValueError(
            f"hypotheses and references must be as many, "
            f"got {len(hypotheses)} and {len(references)}"
        )
    if not hypotheses:
        raise ValueError("hypotheses must hold at least one sentence, got none")
