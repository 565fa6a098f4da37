"""How sure is a BLEU score? Its counts, sentence by sentence, and the bootstrap over sentences.

A test set is a sample. Another thousand sentences of the same kind would have given another score,
and the bootstrap says how different: it draws test sets from the test set, with replacement, and
scores each. Where two systems are scored on the same draws, much of the luck cancels.

It speaks of the luck of the sentences alone. The luck of a training run shows in its seeds.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from sacrebleu.metrics.bleu import BLEU

#: Longest n-gram that BLEU counts.
ORDER = 4


def ngram_counts(hypothesis: Sequence[str], reference: Sequence[str]) -> list[int]:
    """Count what BLEU needs of one sentence.

    Args:
        hypothesis: the tokens of a translation.
        reference: the tokens of the right one.

    Returns:
        Number of tokens of both; n-grams of the hypothesis that the reference has as well, for n
        from 1 to 4, none of them more often than the reference has it; and n-grams of the
        hypothesis, for n from 1 to 4.

    Paper: section 6.1, Table 2
    """
    matches, totals = [], []
    for n in range(1, ORDER + 1):
        found, wanted = (
            Counter(zip(*(tokens[start:] for start in range(n)), strict=False))
            for tokens in (hypothesis, reference)
        )
        matches.append((found & wanted).total())
        totals.append(found.total())
    return [len(hypothesis), len(reference), *matches, *totals]


def sentence_counts(
    hypotheses: Sequence[str],
    references: Sequence[str],
    tokenize: str = "13a",
    lowercase: bool = False,
) -> Int[np.ndarray, "n 10"]:
    """Count what BLEU needs of each sentence of a test set.

    Args:
        hypotheses: the translations.
        references: one reference for each.
        tokenize: one of sacreBLEU's tokenisers.
        lowercase: whether to ignore case.

    Returns:
        A row for each sentence, as :func:`ngram_counts` has it.

    Raises:
        ValueError: if there are not as many of both, or no such tokeniser.

    Paper: section 6.1, Table 2
    """
    if tokenize not in BLEU.TOKENIZERS:
        raise ValueError(f"tokenize must be one of {', '.join(BLEU.TOKENIZERS)}, got {tokenize!r}")
    if len(hypotheses) != len(references):
        raise ValueError(
            f"hypotheses and references must be as many, got {len(hypotheses)} and "
            f"{len(references)}"
        )
    cut = BLEU(tokenize=tokenize, force=True).tokenizer

    def tokens(text: str) -> list[str]:
        return cut((text.lower() if lowercase else text).rstrip()).split()

    rows = [ngram_counts(tokens(h), tokens(r)) for h, r in zip(hypotheses, references, strict=True)]
    return np.array(rows, dtype=np.int64).reshape(-1, 2 + 2 * ORDER)


def bleu_of_counts(sums: Float[np.ndarray, "*sets 10"] | Int[np.ndarray, "*sets 10"]) -> np.ndarray:
    """Make BLEU out of the counts of whole test sets.

    An n-gram precision of nothing counts as a half, a quarter and so on of one match, as sacreBLEU
    does it ("exp").

    Args:
        sums: one row of counts for each test set: the sum of its rows of ``sentence_counts``.

    Returns:
        BLEU from 0 to 100, of the shape ``sets``.

    Paper: section 6.1, Table 2
    """
    sums = np.asarray(sums, dtype=float)
    length, reference = sums[..., 0], sums[..., 1]
    matches, totals = sums[..., 2 : 2 + ORDER], sums[..., 2 + ORDER :]
    halvings = np.cumsum(matches == 0, axis=-1)
    smoothed = np.where(matches == 0, 0.5**halvings, matches)
    usable = (totals > 0).all(axis=-1) & (matches > 0).any(axis=-1)
    precision = smoothed / np.maximum(totals, 1)
    brevity = np.exp(np.minimum(0.0, 1 - reference / np.maximum(length, 1)))
    return np.where(usable, 100 * brevity * np.exp(np.log(precision).mean(axis=-1)), 0.0)


def bootstrap(
    counts: Int[np.ndarray, "n 10"], samples: int = 1000, seed: int = 0
) -> Float[np.ndarray, "samples"]:
    """Score test sets that are drawn from a test set, with replacement.

    Two systems with as many sentences and the same seed are scored on the same draws, so that
    their scores can be subtracted, draw by draw.

    Args:
        counts: one row a sentence, from :func:`sentence_counts`.
        samples: how many test sets to draw.
        seed: of the draws.

    Returns:
        BLEU of each drawn test set.

    Raises:
        ValueError: if there are no sentences, or ``samples`` is below 1.
    """
    if not len(counts):
        raise ValueError("counts must hold at least one sentence, got none")
    if samples < 1:
        raise ValueError(f"samples must be at least 1, got {samples}")
    n = len(counts)
    times = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=samples)
    return bleu_of_counts(times.astype(float) @ counts)


def interval(
    scores: Sequence[float] | Float[np.ndarray, "samples"], level: float = 0.95
) -> tuple[float, float]:
    """Return the middle part of some scores, such as 95 of 100.

    Args:
        scores: from :func:`bootstrap`, or differences of such.
        level: share of the scores that lie inside, above 0 and below 1.

    Raises:
        ValueError: if ``level`` is out of range.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be above 0 and below 1, got {level}")
    outside = (1 - level) / 2
    low, high = np.quantile(np.asarray(scores), [outside, 1 - outside])
    return float(low), float(high)
