"""Measure what a leak between training and test is worth, and write the record of chapter 13.

    python -m transformer_book.studies.splits.record_leakage     about three minutes on one core

Items that the record holds are kept: a stopped recording continues.
"""

from typing import Any

import numpy as np
import torch

from transformer.data.batching import TokenBatches, encode_pairs
from transformer.data.corpora.local import require_file
from transformer.data.corpora.tatoeba import read_pairs
from transformer.inference.metrics import bleu
from transformer.inference.significance import (
    bleu_of_counts,
    bootstrap,
    interval,
    sentence_counts,
)
from transformer.inference.translator import Translator
from transformer.training.config import TrainingConfig
from transformer_book.studies.recording import SHIPPED, Recording, parser, shipped
from transformer_book.studies.simple_translators import NearestSentence
from transformer_book.studies.splits.leakage import RECORD, Half, draw_halves, recall, training_sets
from transformer_book.studies.training import copy_weights, train

#: Seeds of the random splits, test pairs of each, and seeds of the fine-tuning runs.
SPLITS, TEST_PAIRS, SEEDS = range(5), 1000, range(3)
#: Passes over the relatives, and the constant learning rate.
PASSES, RATE = 2, 3e-4


def measure_memory(
    memory: NearestSentence, seed: int, texts: dict[str, list[str]]
) -> dict[str, object]:
    """Score the nearest sentence of four training sets on one random test set.

    ``texts`` takes the translations.

    Returns:
        For each training set its size and its BLEU; and the BLEU that is lost from the first to
        the last: lower end, value and upper end of the 95% interval over sentences.
    """
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
    """Train on the relatives of one half, then anew on those of the other; test both on both.

    Returns:
        The greedy translation of every test sentence, those of the first half first, after training
        on its relative ("relatives") and on those of the other half ("strangers").
    """
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


def main() -> None:
    """Record what is missing."""
    output = parser(__doc__, RECORD).parse_args().output
    torch.set_num_threads(1)
    translator, corpus, heading = shipped()
    recording = Recording(
        output, "transformer_book.studies.splits.record_leakage", digits=4, **heading
    )
    content, texts = recording.content, recording.texts
    done = content.setdefault("memory", [])
    if missing := [seed for seed in SPLITS if seed not in {run["seed"] for run in done}]:
        memory = NearestSentence(read_pairs(require_file("deu.txt.gz", SHIPPED)))
        for seed in missing:
            done.append(measure_memory(memory, seed, texts))
            recording.save(f"random split {seed}")
    if "fine_tuning" not in content:
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


if __name__ == "__main__":
    main()
