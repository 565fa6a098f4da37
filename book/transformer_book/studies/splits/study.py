"""Leaks made on purpose: the effect of test sentences in the training text on a test score."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Int64

from transformer.data.batching import TokenBatches, encode_pairs
from transformer.data.corpora.local import require_file
from transformer.data.corpora.tatoeba import read_pairs
from transformer.data.parallel import Split
from transformer.data.progress import progress
from transformer.data.splits import components
from transformer.inference.metrics import bleu
from transformer.inference.significance import bleu_of_counts, bootstrap, interval, sentence_counts
from transformer.inference.translator import Translator
from transformer.training.config import TrainingConfig
from transformer_book.studies.recording import SHIPPED, Recording, shipped
from transformer_book.studies.simple_translators import NearestSentence
from transformer_book.studies.training import copy_weights, train

#: The recorded effects of the leaks on test scores.
RECORD = Path(__file__).with_name("record.json")

#: Seeds of the random splits, test pairs of each, and seeds of the fine-tuning runs.
SPLITS, TEST_PAIRS, SEEDS = range(5), 1000, range(3)
#: Passes over the relatives, and the constant learning rate.
PASSES, RATE = 2, 3e-4


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


@dataclass(frozen=True)
class Half:
    """Test pairs, one per component, and for each a relative: another pair of its component."""

    test: Split
    relatives: Split


def draw_halves(split: Split, seed: int = 0) -> tuple[Half, Half]:
    """Draw a pair and a relative from each component with two; nothing connects the two halves."""
    label = np.array(components(split.source, split.target))
    groups = [np.flatnonzero(label == one) for one in np.unique(label)]
    groups = [group for group in groups if len(group) > 1]
    random = np.random.default_rng(seed)
    drawn = [random.permutation(groups[i])[:2] for i in random.permutation(len(groups))]
    size = len(drawn) // 2
    halves = np.array(drawn[:size]), np.array(drawn[size : 2 * size])
    first, second = (Half(*(_take(split, rows.tolist()) for rows in half.T)) for half in halves)
    return first, second


def _take(split: Split, rows: Sequence[int]) -> Split:
    return Split([split.source[i] for i in rows], [split.target[i] for i in rows])


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


def fine_tune(translator: Translator, halves: tuple[Half, Half], seed: int) -> dict[str, list[str]]:
    """Train on the relatives of each half; return all greedy translations of both conditions."""
    model: Any = translator.model
    weights = copy_weights(model)
    found: dict[str, list[list[str]]] = {"relatives": [], "strangers": []}
    for trained in halves:
        pairs = encode_pairs(translator.tokenizer, trained.relatives)
        steps = PASSES * len(TokenBatches(pairs, 512))
        config = TrainingConfig(max_steps=steps, batch_tokens=512, seed=seed)
        train(model, pairs, config, lambda step: RATE)
        for tested in halves:
            name = "relatives" if tested is trained else "strangers"
            found[name].append(translator(tested.test.source, beam_size=1))
        model.load_state_dict(weights)
    found["strangers"].reverse()  # they were tested in the other order
    return {name: first + second for name, (first, second) in found.items()}


def heading() -> dict[str, Any]:
    """Return the model and the corpus in the record."""
    return shipped()[-1]


def fill(recording: Recording) -> None:
    """Measure what a record lacks: random splits, then fine-tuning."""
    content, texts = recording.content, recording.texts
    done = content.setdefault("memory", [])
    if missing := [seed for seed in SPLITS if seed not in {run["seed"] for run in done}]:
        memory = NearestSentence(read_pairs(require_file("deu.txt.xz", SHIPPED)))
        for seed in missing:
            done.append(measure_memory(memory, seed, texts))
            recording.save(f"random split {seed}")
    if "fine_tuning" in content:
        return
    translator, corpus, _ = shipped()
    halves = draw_halves(corpus.test)
    source, target = (
        [text for half in halves for text in getattr(half.test, side)]
        for side in ("source", "target")
    )
    texts["shipped"] = translator(source, beam_size=1)
    for seed in SEEDS:
        found = fine_tune(translator, halves, seed)
        texts |= {f"{name}, seed {seed}": each for name, each in found.items()}
    kinds = ("relatives", "strangers")
    content["fine_tuning"] = dict(
        sentences=len(target),
        passes=PASSES,
        learning_rate=RATE,
        shipped=bleu(texts["shipped"], target).score,
        runs=[
            dict(seed=seed)
            | {name: bleu(texts[f"{name}, seed {seed}"], target).score for name in kinds}
            for seed in SEEDS
        ],
    )
    recording.save("fine-tuning on relatives and on strangers")
