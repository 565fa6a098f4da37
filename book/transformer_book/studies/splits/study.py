"""Leaks made on purpose: the effect of test sentences in the training text on a test score."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Int64

from transformer.data.corpora import load_corpus
from transformer.data.corpora.local import require_file
from transformer.data.corpora.tatoeba import read_pairs
from transformer.data.parallel import Split
from transformer.data.progress import progress
from transformer.data.splits import components
from transformer.inference.significance import bleu_of_counts, bootstrap, interval, sentence_counts
from transformer_book.studies.recording import SHIPPED, Recording, corpus_facts
from transformer_book.studies.simple_translators import NearestSentence

#: The recorded effects of the leaks on test scores.
RECORD = Path(__file__).with_name("record.json")

#: Seeds of the random splits, and test pairs of each.
SPLITS, TEST_PAIRS = range(5), 1000


def training_sets(
    pairs: Split, test: Int64[np.ndarray, " tests"]
) -> dict[str, Bool[np.ndarray, " pairs"]]:
    """Choose four training sets, as masks over pairs, that share less and less with a test."""
    others = np.ones(len(pairs), dtype=bool)
    others[test] = False
    source, target = (
        np.unique(side, return_inverse=True)[1] for side in (pairs.source, pairs.target)
    )
    label = np.array(components(pairs.source, pairs.target))
    new_source = others & ~np.isin(source, source[test])
    return {
        "every other pair": others,
        "no source of the test": new_source,
        "no sentence of the test": new_source & ~np.isin(target, target[test]),
        "nothing connected": ~np.isin(label, label[test]),
    }


def recall(
    memory: NearestSentence,
    texts: Sequence[str],
    training: Mapping[str, Bool[np.ndarray, " pairs"]],
) -> dict[str, list[str]]:
    """Translate texts by the nearest sentence of each of several training sets."""
    found: dict[str, list[str]] = {name: [] for name in training}
    for text in progress(texts):
        similarity = memory.similarity(text)
        for name, chosen in training.items():
            nearest = int(np.argmax(np.where(chosen, similarity, -1.0)))
            found[name].append(memory.train.target[nearest])
    return found


def measure_memory(
    memory: NearestSentence, seed: int, texts: dict[str, list[str]]
) -> dict[str, object]:
    """Score the nearest sentence of four training sets on one random test set."""
    pairs = memory.train
    test = np.random.default_rng(seed).choice(len(pairs), TEST_PAIRS, replace=False)
    sets = training_sets(pairs, test)
    found = recall(memory, [pairs.source[i] for i in test], sets)
    right = [pairs.target[i] for i in test]
    texts |= {f"split {seed}, {name}": each for name, each in found.items()}
    counts = {name: sentence_counts(each, right) for name, each in found.items()}
    scores = {name: float(bleu_of_counts(each.sum(axis=0))) for name, each in counts.items()}
    first, *_, last = counts.values()
    low, high = interval(bootstrap(first) - bootstrap(last))
    before, *_, after = scores.values()
    return dict(
        seed=seed,
        pairs={name: int(rows.sum()) for name, rows in sets.items()},
        bleu=scores,
        worth=[low, before - after, high],
    )


def heading() -> dict[str, Any]:
    """Return the corpus in the record."""
    return dict(corpus=corpus_facts(load_corpus(SHIPPED), "all"))


def fill(recording: Recording) -> None:
    """Measure the random splits that a record lacks."""
    content, texts = recording.content, recording.texts
    done = content.setdefault("memory", [])
    if missing := [seed for seed in SPLITS if seed not in {run["seed"] for run in done}]:
        memory = NearestSentence(read_pairs(require_file("deu.txt.xz", SHIPPED)))
        for seed in missing:
            done.append(measure_memory(memory, seed, texts))
            recording.save(f"random split {seed}")
