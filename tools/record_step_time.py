"""Record where the time of a training step goes, at the sizes of `make bench`.

    python tools/record_step_time.py

The record, transformer/lab/speed/step_time.json, is what the speed page shows
(tools/make_speed.py); make it again when the model or the loss has changed. It is always of the
processor; `make gpu` records the same of a GPU with each throughput that it measures. It takes a
minute. The steps are of Tatoeba pairs, bucketed, in float32.
"""

import argparse
import os
from pathlib import Path

os.environ["ACCELERATE_USE_CPU"] = "true"  # before accelerate looks for a GPU

import torch

from transformer.book.speed import STEP_TIME
from transformer.data.batching import TokenBatches, encode_pairs
from transformer.data.corpora import load_corpus
from transformer.inference.translator import Translator
from transformer.lab.speed.step_time import measure_step_time
from transformer.model.config import TransformerConfig
from transformer.recipes.record import describe_environment, write_record
from transformer.training.config import TrainingConfig

# Of each column: the configuration and the tokens of a batch, as in tests/benchmarks/bench.py, and
# the threads.
SIZES = {
    "tiny": (TransformerConfig.tiny(8000, dropout=0.1), 2048, 1),
    "small": (TransformerConfig(8000, d_model=256, d_ff=1024, num_heads=4, num_layers=3), 2048, 1),
    "base": (TransformerConfig.base(8000), 1024, 1),
    "base, two threads": (TransformerConfig.base(8000), 1024, 2),
}


def main() -> None:
    """Make the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=STEP_TIME)
    parser.add_argument("--steps", type=int, default=4, help="of each size")
    arguments = parser.parse_args()
    tokenizer = Translator.from_pretrained("tatoeba-en-de").tokenizer
    pairs = encode_pairs(tokenizer, load_corpus("tatoeba-en-de").train)
    sizes = {}
    for name, (model, tokens, threads) in SIZES.items():
        torch.set_num_threads(threads)
        training = TrainingConfig(batch_tokens=tokens)
        found = measure_step_time(model, TokenBatches(pairs, tokens), training, arguments.steps)
        shares = ", ".join(f"{kind} {share:.0%}" for kind, share in found.shares.items())
        print(f"{name}: {found.seconds_per_step:.2f} s a step; {shares}", flush=True)
        sizes[name] = found.to_record()
    record = dict(
        command="python tools/record_step_time.py", environment=describe_environment(), sizes=sizes
    )
    print(write_record(arguments.output, record))


if __name__ == "__main__":
    main()
