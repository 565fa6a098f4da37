"""Confidence intervals of BLEU by the bootstrap over sentences.

A test set is a sample: another thousand sentences of the same kind would give another score. The
bootstrap estimates how different it would be: it draws test sets from the test set, with
replacement, and scores each. If two systems are scored on the same draws, much of the sampling
noise cancels in the difference. The interval does not include the variation between training runs,
which takes several seeds to measure.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from sacrebleu.metrics.bleu import BLEU

from transformer.inference.metrics import require_pairs, require_tokenizer

#: Longest n-gram that BLEU counts.
ORDER = 4


def ngram_counts(hypothesis: Sequence[str], reference: Sequence[str]) -> list[int]:
    """Count the tokens and n-grams of one sentence that BLEU is computed from.

    Args:
        hypothesis: the tokens of a translation.
        reference: the tokens of the reference.

    Returns:
        Number of tokens of both; n-grams of the hypothesis that occur in the reference, for n from
        1 to 4, each at most as often as the reference has it; and n-grams of the hypothesis, for n
        from 1 to 4.
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
    """Count the tokens and n-grams of each sentence of a test set.

    Args:
        hypotheses: the translations.
        references: one reference for each.
        tokenize: one of sacreBLEU's tokenisers.
        lowercase: whether to ignore case.

    Returns:
        A row per sentence, as :func:`ngram_counts` returns it.

    Raises:
        ValueError: if there are no sentences, the numbers differ, or the tokeniser is unknown.
    """
    require_pairs(hypotheses, references)
    require_tokenizer(tokenize)
    cut = BLEU(tokenize=tokenize, force=True).tokenizer

    def tokens(text: str) -> list[str]:
        return cut((text.lower() if lowercase else text).rstrip()).split()

    rows = [ngram_counts(tokens(h), tokens(r)) for h, r in zip(hypotheses, references, strict=True)]
    return np.array(rows, dtype=np.int64)


def bleu_of_counts(sums: Float[np.ndarray, "*sets 10"] | Int[np.ndarray, "*sets 10"]) -> np.ndarray:
    """Compute BLEU from the counts of whole test sets.

    A precision of zero is smoothed as in sacreBLEU ("exp"): the first counts as half a match, the
    second as a quarter, and so on.

    Args:
        sums: one row of counts per test set: the sum of its rows of ``sentence_counts``.

    Returns:
        BLEU from 0 to 100, of the shape ``sets``.
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

    The draws depend only on the number of sentences and the seed, so the scores of two systems can
    be subtracted draw by draw.

    Args:
        counts: one row per sentence, from :func:`sentence_counts`.
        samples: number of test sets to draw.
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
    """Return the central interval of bootstrap scores.

    Args:
        scores: from :func:`bootstrap`, or differences of them.
        level: share of the scores inside, above 0 and below 1.

    Raises:
        ValueError: if ``level`` is out of range.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be above 0 and below 1, got {level}")
    outside = (1 - level) / 2
    low, high = np.quantile(np.asarray(scores), [outside, 1 - outside])
    return float(low), float(high)
