"""Measure the start of a run on a large text: encoding it once, then mapping and planning it.

    python -m transformer_book.speed.record_scale
    python -m transformer_book.speed.record_scale --pairs 100_000 --output scale.json

A line of the text joins two random sentences of the corpus that ships with the package. Each stage
runs in its own process, on one thread, and reports its seconds and its peak memory. Ten million
pairs take half an hour on one core, and 4 GB of disk.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformer.data.batching import TokenBatches
from transformer.data.corpora import load_corpus
from transformer.data.parallel import StreamedSplit, stream_parallel_files
from transformer.data.token_cache import cached_pairs, cached_tokenizer
from transformer_book.speed.scale import RECORD
from transformer_book.studies.recording import SHIPPED, Recording, parser

MODULE = "transformer_book.speed.record_scale"
JOINED = 2
VOCAB_SIZE = 37_000
BATCH_TOKENS = 25_000


def main() -> None:
    """Make the record."""
    options = parser(__doc__, RECORD)
    options.add_argument("--pairs", type=int, nargs="+", default=[100_000, 10_000_000])
    options.add_argument("--vocab-size", type=int, default=VOCAB_SIZE)
    options.add_argument("--folder", type=Path, help="a disk with room; a temporary one by default")
    options.add_argument("--stage", choices=STAGES, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.stage:
        return report(chosen.stage, chosen.folder, chosen.vocab_size)
    recording = Recording(
        chosen.output,
        MODULE,
        keep=False,
        corpus=dict(name=SHIPPED, sentences_a_line=JOINED, seed=0),
        vocab_size=chosen.vocab_size,
        batch_tokens=BATCH_TOKENS,
        pairs={},
    )
    for pairs in chosen.pairs:
        with tempfile.TemporaryDirectory(dir=chosen.folder, prefix="scale-") as folder:
            recording.content["pairs"][str(pairs)] = measure(Path(folder), pairs, chosen.vocab_size)
    recording.save(str(chosen.output))


def measure(folder: Path, pairs: int, vocab_size: int) -> dict[str, Any]:
    """Write a text of so many pairs and run every stage on it, the last one twice."""
    files = write_text(folder, pairs)
    found: dict[str, Any] = dict(text_bytes=sum(file.stat().st_size for file in files))
    for name, stage in (*((stage, stage) for stage in STAGES), ("start_again", "start")):
        command = [sys.executable, "-m", MODULE, "--stage", stage, "--folder", str(folder)]
        done = subprocess.run(
            [*command, "--vocab-size", str(vocab_size)],
            env=dict(os.environ, RAYON_NUM_THREADS="1", OMP_NUM_THREADS="1"),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        found[name] = json.loads(done.stdout.splitlines()[-1])
        print(f"{pairs:,} pairs, {name}: {found[name]}", flush=True)
    found["cache_bytes"] = sum(f.stat().st_size for f in (folder / "tokens").rglob("*.*"))
    return found


def write_text(folder: Path, pairs: int) -> tuple[Path, Path]:
    """Write two aligned files, the same for the same number of pairs."""
    train, rng = list(load_corpus(SHIPPED).train), random.Random(0)
    paths = _paths(folder)
    with open(paths[0], "w", encoding="utf-8") as a, open(paths[1], "w", encoding="utf-8") as b:
        for _ in range(pairs):
            chosen = rng.choices(train, k=JOINED)
            a.write(" ".join(source for source, _ in chosen) + "\n")
            b.write(" ".join(target for _, target in chosen) + "\n")
    return paths


def report(stage: str, folder: Path, vocab_size: int) -> None:
    """Run one stage in this process and print its time and memory."""
    before, started, cpu = peak_bytes(), time.perf_counter(), time.process_time()
    found = STAGES[stage](stream_parallel_files(*_paths(folder)), folder / "tokens", vocab_size)
    found |= dict(
        seconds=round(time.perf_counter() - started, 3),
        cpu_seconds=round(time.process_time() - cpu, 3),
        idle_bytes=before,
        peak_bytes=peak_bytes(),
    )
    print(json.dumps(found))


def start(text: StreamedSplit, cache: Path, vocab_size: int) -> dict[str, Any]:
    """Prepare the first step of a run from the cache."""
    pairs = cached_pairs(cached_tokenizer(text, vocab_size, cache), text, cache)
    batches = TokenBatches(pairs, BATCH_TOKENS, max_length=256)
    plan = batches.epoch(0)
    batches.batch(plan[0])
    return dict(batches=len(plan))


def encode(text: StreamedSplit, cache: Path, vocab_size: int) -> dict[str, Any]:
    """Encode the text."""
    pairs = cached_pairs(cached_tokenizer(text, vocab_size, cache), text, cache)
    return dict(source_tokens=len(pairs.source.ids), target_tokens=len(pairs.target.ids))


STAGES: dict[str, Callable[[StreamedSplit, Path, int], dict[str, Any]]] = dict(
    learn=lambda text, cache, size: dict(vocab_size=cached_tokenizer(text, size, cache).vocab_size),
    encode=encode,
    start=start,
)


def peak_bytes() -> int:
    """Return the most memory that this process has held, mapped files included."""
    # Unlike getrusage, this does not count the memory of the parent process.
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise OSError("this system does not report the peak memory of a process")


def _paths(folder: Path) -> tuple[Path, Path]:
    return folder / "text.source", folder / "text.target"


if __name__ == "__main__":
    main()
