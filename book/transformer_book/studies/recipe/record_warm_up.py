"""Train with three ways to begin at several learning rates and write the record of chapter 15.

    python -m transformer_book.studies.recipe.record_warm_up     five minutes on one core

Runs that the record holds are kept: a stopped recording continues, on the same machine. Delete the
file to record anew.
"""

from itertools import product

import torch

from transformer.data.corpora import load_corpus
from transformer_book.studies.recipe.warm_up import PEAKS, PRESET, RECORD, SEEDS, STARTS, run
from transformer_book.studies.recording import Recording, corpus_facts, parser
from transformer_book.studies.training import short_text

SPLIT = "validation"


def main() -> None:
    """Record the runs that are missing."""
    output = parser(__doc__, RECORD).parse_args().output
    torch.set_num_threads(1)
    corpus = load_corpus("tatoeba-en-de")
    text = short_text(corpus, PRESET, split=SPLIT)
    recording = Recording(
        output,
        "transformer_book.studies.recipe.record_warm_up",
        digits=4,
        corpus=corpus_facts(corpus, SPLIT),
        preset=PRESET.to_dict(),
    )
    runs = recording.content.setdefault("runs", [])
    done = {(each["peak"], each["start"], each["seed"]) for each in runs}
    for seed, peak, start in product(SEEDS, PEAKS, STARTS):
        if (peak, start, seed) not in done:
            runs.append(run(peak, start, seed, text))
            recording.save(f"peak {peak}, start: {start}, seed {seed}")


if __name__ == "__main__":
    main()
