"""Confidence intervals of BLEU and chrF, and of differences between two systems.

A test set is a sample: another thousand sentences of the same kind would give another score. The
bootstrap estimates how different it would be: it draws test sets from the test set, with
replacement, and scores each. The unit of the draw is the unit that was sampled. Where a corpus was
split by groups of pairs that share a sentence, whole groups are drawn.

If two systems are scored on the same draws, much of the sampling noise cancels in the difference.
:func:`paired_bootstrap` draws training runs as well as sentences, so that its interval includes the
variation between seeds.
"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, Int
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from transformer.inference.metrics import require_pairs, require_tokenizer

#: Longest n-gram that BLEU counts, in tokens.
ORDER = 4

# BLEU or chrF of each row of summed counts.
CorpusScore = Callable[[np.ndarray], np.ndarray]


def sentence_counts(
    hypotheses: Sequence[str],
    references: Sequence[str],
    tokenize: str = "13a",
    lowercase: bool = False,
) -> Int[np.ndarray, "n 10"]:
    """Count the tokens and n-grams of each sentence of a test set.

    A row per sentence: number of tokens of translation and reference; n-grams of the translation
    that the reference has, for n from 1 to 4, each at most as often as it has them; and n-grams of
    the translation, for n from 1 to 4.
    """
    require_tokenizer(tokenize)
    return _statistics(
        BLEU(tokenize=tokenize, lowercase=lowercase, force=True), hypotheses, references
    )


def _statistics(
    metric: BLEU | CHRF, hypotheses: Sequence[str], references: Sequence[str]
) -> Int[np.ndarray, "n k"]:
    """Return what sacreBLEU's own bootstrap adds up, which has no public name there."""
    require_pairs(hypotheses, references)
    rows = metric._extract_corpus_statistics(list(hypotheses), [list(references)])
    return np.array(rows, dtype=np.int64)


def bleu_of_counts(sums: Float[np.ndarray, "*sets 10"] | Int[np.ndarray, "*sets 10"]) -> np.ndarray:
    """Compute BLEU, 0 to 100, from the summed rows of ``sentence_counts`` of each test set.

    A precision of zero is smoothed as in sacreBLEU ("exp"): the first counts as half a match, the
    second as a quarter, and so on.
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


def character_counts(
    hypotheses: Sequence[str], references: Sequence[str]
) -> Int[np.ndarray, "n 18"]:
    """Count the character n-grams of each sentence that chrF2 is computed from, without spaces.

    A row per sentence. For n from 1 to 6: n-grams of the hypothesis (0 if the reference has none),
    of the reference, and common to both.
    """
    return _statistics(CHRF(), hypotheses, references)


def chrf_of_counts(sums: Float[np.ndarray, "*sets 18"] | Int[np.ndarray, "*sets 18"]) -> np.ndarray:
    """Compute chrF2, 0 to 100, from the summed rows of ``character_counts`` of each test set."""
    sums = np.asarray(sums, dtype=float)
    found, wanted, common = (sums[..., start::3] for start in range(3))
    used = (found > 0) & (wanted > 0)
    orders = np.maximum(used.sum(axis=-1), 1)
    precision = np.where(used, common / np.maximum(found, 1), 0.0).sum(axis=-1) / orders
    recall = np.where(used, common / np.maximum(wanted, 1), 0.0).sum(axis=-1) / orders
    balance = np.maximum(4 * precision + recall, 1e-300)
    return np.asarray(100 * 5 * precision * recall / balance)


def bootstrap(
    counts: Float[np.ndarray, "n k"] | Int[np.ndarray, "n k"],
    samples: int = 1000,
    seed: int = 0,
    groups: Sequence[int] | None = None,
    score: CorpusScore = bleu_of_counts,
) -> Float[np.ndarray, "samples"]:
    """Score test sets that are drawn from a test set, with replacement.

    The draws depend only on the number of groups and the seed, so the scores of two systems can be
    subtracted draw by draw.

    Args:
        counts: one row per sentence, from :func:`sentence_counts` or :func:`character_counts`, or
            other numbers whose sums ``score`` takes.
        samples: number of test sets to draw.
        seed: of the draws.
        groups: group of each sentence, such as :func:`~transformer.data.splits.components` returns;
            whole groups are drawn. None if each sentence was sampled by itself.
        score: computes a score from the sums of each drawn test set.

    Raises:
        ValueError: if there are no sentences, ``groups`` has another length, or ``samples`` is
            below 1.
    """
    grouped = _sum_by_group(counts, groups)
    return score(_draws(len(grouped), samples, seed) @ grouped)


def paired_bootstrap(
    ours: Sequence[Int[np.ndarray, "_ k"]],
    theirs: Sequence[Int[np.ndarray, "_ k"]],
    samples: int = 1000,
    seed: int = 0,
    groups: Sequence[int] | None = None,
    score: CorpusScore = bleu_of_counts,
) -> Float[np.ndarray, "samples"]:
    """Draw our mean score minus that of another system, over sentences and runs.

    Each draw takes the same sentences for all runs, and draws the runs of either system with
    replacement. The mean of k drawn runs varies too little by the factor sqrt((k - 1) / k), which
    is corrected. A single run shows no variation, and none is included. With fewer than about ten
    runs the interval is too narrow, because they show their own spread badly.

    Args:
        ours: counts of each run of a system, as for :func:`bootstrap`.
        theirs: those of the other system, on the same sentences.
        samples: number of draws.
        seed: of the draws.
        groups: as for :func:`bootstrap`.
        score: as for :func:`bootstrap`.

    Raises:
        ValueError: if a system has no run, two runs differ in the number of sentences, or an
            argument is out of range as for :func:`bootstrap`.
    """
    if not len(ours) or not len(theirs):
        raise ValueError("ours and theirs must hold the counts of at least one run each")
    for counts in (*ours, *theirs):
        if np.ndim(counts) != 2:
            raise ValueError(
                f"ours and theirs must hold a matrix of counts per run, got one of shape "
                f"{np.shape(counts)}; for a single run, give [counts]"
            )
    if len(lengths := {len(counts) for counts in (*ours, *theirs)}) > 1:
        raise ValueError(f"all runs must have the same sentences, got {sorted(lengths)} of them")
    random = np.random.default_rng([seed, 1])
    means = []
    for runs in (ours, theirs):
        grouped = [_sum_by_group(counts, groups) for counts in runs]
        draws = _draws(len(grouped[0]), samples, seed)
        scores = np.stack([score(draws @ counts) for counts in grouped], axis=1)
        k = scores.shape[1]
        drawn = np.take_along_axis(scores, random.integers(k, size=(samples, k)), axis=1)
        mean = scores.mean(axis=1)
        widening = np.sqrt(k / max(k - 1, 1))
        means.append(mean + widening * (drawn.mean(axis=1) - mean))
    return means[0] - means[1]


def _sum_by_group(
    counts: Float[np.ndarray, "n k"] | Int[np.ndarray, "n k"], groups: Sequence[int] | None
) -> Float[np.ndarray, "groups k"] | Int[np.ndarray, "groups k"]:
    counts = np.asarray(counts)
    if not len(counts):
        raise ValueError("counts must hold at least one sentence, got none")
    if groups is None:
        return counts
    if len(groups) != len(counts):
        raise ValueError(
            f"groups must have {len(counts)} entries, one per sentence, got {len(groups)}"
        )
    _, place = np.unique(np.asarray(groups), return_inverse=True)
    sums = np.zeros((place.max() + 1, counts.shape[1]), dtype=counts.dtype)
    np.add.at(sums, place, counts)
    return sums


def _draws(units: int, samples: int, seed: int) -> Float[np.ndarray, "samples units"]:
    """Return how often each unit occurs in each drawn test set."""
    if samples < 1:
        raise ValueError(f"samples must be at least 1, got {samples}")
    random = np.random.default_rng(seed)
    return random.multinomial(units, np.full(units, 1 / units), size=samples).astype(float)


def interval(
    scores: Sequence[float] | Float[np.ndarray, "samples"], level: float = 0.95
) -> tuple[float, float]:
    """Return the central interval of bootstrap scores that holds a share of ``level``."""
    if len(scores) == 0:
        raise ValueError("scores must not be empty")
    if not 0 < level < 1:
        raise ValueError(f"level must be above 0 and below 1, got {level}")
    outside = (1 - level) / 2
    low, high = np.quantile(np.asarray(scores), [outside, 1 - outside])
    return float(low), float(high)
