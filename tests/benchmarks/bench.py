"""Speed beside the peers, as ratios: `make bench`.

Every round runs every peer on the same batch, in turn, so that a busy machine slows all of them.
A ratio compares two peers within one round; what is printed is the median of the ratios and their
range. No absolute time is a result: seconds say more about the machine than about the code.
"""

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from peers import DECODED_TOKENS, PEERS
from torch import Tensor

from transformer.data.batching import TokenBatches, encode_pairs
from transformer.data.corpora import load_corpus
from transformer.data.tokenizer import Tokenizer
from transformer.experiments.record import describe_environment
from transformer.model.config import TransformerConfig

SIZES = {
    "tiny (4 layers, d_model 128)": TransformerConfig.tiny(8000, dropout=0.1),
    "small (3 layers, d_model 256)": TransformerConfig(
        8000, d_model=256, d_ff=1024, num_heads=4, num_layers=3
    ),
}


def measure(tasks: dict[str, Callable[[], int]], rounds: int) -> dict[str, list[float]]:
    """Return units per CPU second of each peer in each round; one more round warms up."""
    speed: dict[str, list[float]] = {name: [] for name in tasks}
    for i in range(rounds + 1):
        for name, task in tasks.items():
            started = time.process_time()
            units = task()
            if i:
                speed[name].append(units / (time.process_time() - started))
    return speed


def report(title: str, unit: str, speed: dict[str, list[float]]) -> dict:
    """Print one line a peer and return the numbers."""
    ours, *_ = speed.values()
    print(f"\n{title}")
    rows = {}
    for name, values in speed.items():
        ratios = [mine / theirs for mine, theirs in zip(ours, values, strict=True)]
        row = dict(
            median=statistics.median(values),
            ratio=statistics.median(ratios),
            least=min(ratios),
            most=max(ratios),
        )
        rows[name] = row
        beside = (
            f"we are {row['ratio']:.2f} times as fast ({row['least']:.2f} to {row['most']:.2f})"
        )
        print(
            f"  {name:28} {row['median']:10,.0f} {unit}/s   {beside if values is not ours else ''}"
        )
    return rows


def trainer(peer: Any, batches: TokenBatches) -> Callable[[], int]:
    """Return a training step that takes the next batch at each call."""
    plan = iter(batches.epoch(0))
    optimizer = torch.optim.Adam(peer.model.parameters(), fused=True)

    def step() -> int:
        batch = batches.batch(next(plan))
        peer.loss(batch).backward()
        optimizer.step()
        optimizer.zero_grad()
        return batch.num_target_tokens

    return step


def decoder(search: Callable[[Tensor], int], source: Tensor) -> Callable[[], int]:
    """Return a search that checks that it did the whole work."""

    def decode() -> int:
        tokens, expected = search(source), len(source) * DECODED_TOKENS
        if tokens != expected:
            raise AssertionError(f"{tokens} tokens were decoded, expected {expected}")
        return len(source)

    return decode


def main() -> None:
    """Run the whole benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", help="write the numbers to this file")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message=".*nested tensors")  # a peer's own remark
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)

    corpus = load_corpus("tatoeba-en-de")
    train = corpus.train
    tokenizer = Tokenizer.train([*train.source, *train.target], 8000)
    pairs = encode_pairs(tokenizer, train)
    batches = TokenBatches(pairs, 2048)
    results: dict = {"environment": describe_environment()}
    for size, config in SIZES.items():
        tasks = {name: trainer(make(config), batches) for name, make in PEERS.items()}
        title = f"training, {size}, batches of 2,048 tokens"
        results[title] = report(title, "tokens", measure(tasks, options.rounds))

        rows = batches.epoch(0)[0][:32]
        source = torch.from_numpy(pairs.source.padded(rows, tokenizer.pad_id))
        for search in ("greedy", "beam"):
            able = {n: make(config) for n, make in PEERS.items() if getattr(make, search)}
            tasks = {n: decoder(getattr(peer, search), source) for n, peer in able.items()}
            title = f"{search} search, {size}, {len(source)} sentences of {DECODED_TOKENS} tokens"
            results[title] = report(title, "sentences", measure(tasks, options.rounds))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
