"""Train with and without a warm-up at several learning rates and write the record of chapter 15.

    python -m transformer.lab.recipe.record_warm_up     ten minutes on one core

Runs that the record holds are kept: a stopped recording continues, on the same machine. Delete the
file to record anew.
"""

from itertools import product

import torch

from transformer.data.corpora import load_corpus
from transformer.lab.recipe.training import short_text
from transformer.lab.recipe.warm_up import PEAKS, PRESET, RECORD, SEEDS, run
from transformer.lab.recording import Recording, corpus_facts, parser

SPLIT = "validation"


def main() -> None:
    """Record the runs that are missing."""
    output = parser(__doc__, RECORD).parse_args().output
    torch.set_num_threads(1)
    corpus = load_corpus("tatoeba-en-de")
    text = short_text(corpus, PRESET, split=SPLIT)
    recording = Recording(
        output,
        "transformer.lab.recipe.record_warm_up",
        digits=4,
        corpus=corpus_facts(corpus, SPLIT),
        preset=PRESET.to_dict(),
    )
    runs = recording.content.setdefault("runs", [])
    done = {(each["peak"], each["warm_up"], each["seed"]) for each in runs}
    for seed, peak, warm_up in product(SEEDS, PEAKS, (False, True)):
        if (peak, warm_up, seed) not in done:
            runs.append(run(peak, warm_up, seed, text))
            recording.save(f"peak {peak}, {'with' if warm_up else 'no'} warm-up, seed {seed}")


if __name__ == "__main__":
    main()
