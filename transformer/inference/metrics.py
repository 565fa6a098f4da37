"""BLEU and chrF by sacreBLEU, never without the signature.

A BLEU score means something only together with the tokenisation and the options that made it; two
papers that both say "BLEU" may lie a whole point apart on the same output. The signature says
which BLEU it is, so it travels with the score.

Paper: section 6.1, Table 2
"""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from transformer.data.moses import moses_tokens


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
        """The fields as a dictionary, for a recorded run."""
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


def compound_split_bleu(
    hypotheses: Sequence[str], references: Sequence[str], language: str
) -> Score:
    """BLEU as the paper's own script counts it: on Moses tokens, with compounds cut at hyphens.

    "Kaffee-Tasse" becomes "Kaffee ##AT##-##AT## Tasse" on both sides, three words instead of one,
    so that half a compound earns half the credit. Case counts. The score is higher than that of
    :func:`bleu` on the same output: compare it with scores made this way only.

    Args:
        hypotheses: the translations, plain text.
        references: one reference for each, plain text.
        language: code of their language, for Moses' list of abbreviations, such as "de".

    Returns:
        The score under a name of its own; its signature says what was done before sacreBLEU saw
        the text.

    Raises:
        ModuleNotFoundError: if `sacremoses` is not installed.
        ValueError: if there are no sentences, or not as many of both.

    Paper: section 6.1, Table 2 (27.3 and 28.4 on newstest2014)
    """
    _check_pairs(hypotheses, references)
    ours, theirs = (
        _split_compounds(moses_tokens(texts, language)) for texts in (hypotheses, references)
    )
    plain = bleu(ours, theirs, tokenize="none")
    signature = f"{plain.signature}|moses:{language}|compounds:split"
    return Score("BLEU, compounds split", plain.score, signature)


def _split_compounds(texts: Sequence[str]) -> list[str]:
    # As published: of "a-b-c" only the first hyphen is cut, since the b is used up.
    return [re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", text) for text in texts]


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
