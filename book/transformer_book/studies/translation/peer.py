"""Hugging Face's MarianMTModel, trained beside ours from the same weights on the same batches."""

from pathlib import Path

from transformer.data.parallel import Split
from transformer.data.splits import components
from transformer.inference.significance import (
    bootstrap,
    character_counts,
    interval,
    sentence_counts,
)
from transformer_book.studies.translation.counts import SCORES

SEEDS = (1, 2)
OURS, MARIAN = "ours", "MarianMTModel"

RECORD = Path(__file__).parent / "peer.json"


def compare(found: dict[str, list[str]], test: Split, metric: str = "BLEU") -> dict[str, float]:
    """Return the mean over the seeds of our score minus theirs, with its paired 95% interval."""
    count = sentence_counts if metric == "BLEU" else character_counts
    groups = components(test.source, test.target)
    drawn = {
        name: bootstrap(count(texts, test.target), groups=groups, score=SCORES[metric])
        for name, texts in found.items()
    }
    gaps = [drawn[f"{OURS}, seed {seed}"] - drawn[f"{MARIAN}, seed {seed}"] for seed in SEEDS]
    draws = sum(gaps) / len(gaps)
    low, high = interval(draws)
    return dict(mean=float(draws.mean()), low=low, high=high)
