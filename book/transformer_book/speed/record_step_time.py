"""Record where the time of a training step goes, at the sizes of ``make bench``.

    python -m transformer_book.speed.record_step_time     a minute; always on the CPU

The steps are on Tatoeba pairs of similar length, in float32.
"""

import os
from dataclasses import asdict

import torch

from transformer.data.batching import TokenBatches, encode_pairs
from transformer.training.config import TrainingConfig
from transformer_book.speed.bench import SIZES
from transformer_book.speed.comparison import STEP_TIME
from transformer_book.speed.step_time import measure_step_time
from transformer_book.studies.recording import Recording, parser, shipped

#: For each column: size, tokens per batch, threads.
COLUMNS = {
    "tiny": ("tiny", 2048, 1),
    "small": ("small", 2048, 1),
    "base": ("base", 1024, 1),
    "base, two threads": ("base", 1024, 2),
}


def main() -> None:
    """Make the record."""
    options = parser(__doc__, STEP_TIME)
    options.add_argument("--steps", type=int, default=4, help="of each size")
    chosen = options.parse_args()
    os.environ["ACCELERATE_USE_CPU"] = "true"  # accelerate looks for a GPU when a run begins
    translator, corpus, _ = shipped()
    pairs, sizes = encode_pairs(translator.tokenizer, corpus.train), {}
    for name, (size, tokens, threads) in COLUMNS.items():
        torch.set_num_threads(threads)
        training = TrainingConfig(batch_tokens=tokens)
        batches = TokenBatches(pairs, tokens, max_length=training.max_length)
        found = measure_step_time(SIZES[size], batches, training, chosen.steps)
        print(f"{name}: {found.seconds_per_step:.2f} s per step, {found.shares}", flush=True)
        sizes[name] = asdict(found)
    module = "transformer_book.speed.record_step_time"
    Recording(chosen.output, module, keep=False, sizes=sizes).save(str(chosen.output))


if __name__ == "__main__":
    main()
