"""Measure what a large text costs to start with: tokens made once, then mapped, then planned.

    python tools/record_scale.py
    python tools/record_scale.py --pairs 100_000 --output /tmp/scale.json

The text is made from the sentences that come with the package: each line joins two of them, drawn
at random. Each stage runs in a process of its own, on one thread, which says its seconds and the
most memory that it held. The record is transformer/lab/speed/scale.json. Ten million
pairs take half an hour of one core and 4 GB of disk.
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
from transformer.recipes.record import describe_environment, write_record

RECORD = Path(__file__).parent.parent / "transformer/lab/speed/scale.json"
CORPUS = "tatoeba-en-de"
JOINED = 2
VOCAB_SIZE = 37_000
BATCH_TOKENS = 25_000


def main() -> None:
    """Make the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=RECORD)
    parser.add_argument("--pairs", type=int, nargs="+", default=[100_000, 10_000_000])
    parser.add_argument("--vocab-size", type=int, default=VOCAB_SIZE)
    parser.add_argument("--folder", type=Path, help="a disk with room; a temporary one by default")
    parser.add_argument("--stage", choices=STAGES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.stage:
        report(arguments.stage, arguments.folder, arguments.vocab_size)
        return
    sizes: dict[str, Any] = {}
    for pairs in arguments.pairs:
        with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="scale-") as folder:
            sizes[str(pairs)] = measure(Path(folder), pairs, arguments.vocab_size)
    record = dict(
        command="python tools/record_scale.py",
        environment=describe_environment(),
        corpus=dict(name=CORPUS, sentences_a_line=JOINED, seed=0),
        vocab_size=arguments.vocab_size,
        batch_tokens=BATCH_TOKENS,
        pairs=sizes,
    )
    print(write_record(arguments.output, record))


def measure(folder: Path, pairs: int, vocab_size: int) -> dict[str, Any]:
    """Write a text of so many pairs and run every stage on it, the last one twice."""
    files = write_text(folder, pairs)
    found: dict[str, Any] = dict(text_bytes=sum(file.stat().st_size for file in files))
    for name, stage in (*((stage, stage) for stage in STAGES), ("start_again", "start")):
        command = [sys.executable, __file__, "--stage", stage, "--folder", str(folder)]
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
    train, rng = list(load_corpus(CORPUS).train), random.Random(0)
    paths = _paths(folder)
    with open(paths[0], "w", encoding="utf-8") as a, open(paths[1], "w", encoding="utf-8") as b:
        for _ in range(pairs):
            chosen = rng.choices(train, k=JOINED)
            a.write(" ".join(source for source, _ in chosen) + "\n")
            b.write(" ".join(target for _, target in chosen) + "\n")
    return paths


def report(stage: str, folder: Path, vocab_size: int) -> None:
    """Run one stage in this process and print what it took."""
    before, started, cpu = peak_bytes(), time.perf_counter(), time.process_time()
    found = STAGES[stage](stream_parallel_files(*_paths(folder)), folder / "tokens", vocab_size)
    found |= dict(
        seconds=round(time.perf_counter() - started, 3),
        cpu_seconds=round(time.process_time() - cpu, 3),
        idle_bytes=before,
        peak_bytes=peak_bytes(),
    )
    print(json.dumps(found))


def learn(text: StreamedSplit, cache: Path, vocab_size: int) -> dict[str, Any]:
    """Learn the tokenizer."""
    return dict(vocab_size=cached_tokenizer(text, vocab_size, cache).vocab_size)


def encode(text: StreamedSplit, cache: Path, vocab_size: int) -> dict[str, Any]:
    """Encode the text."""
    pairs = cached_pairs(cached_tokenizer(text, vocab_size, cache), text, cache)
    return dict(source_tokens=len(pairs.source.ids), target_tokens=len(pairs.target.ids))


def start(text: StreamedSplit, cache: Path, vocab_size: int) -> dict[str, Any]:
    """Do all that a run does before its first step, with everything in the cache."""
    seconds, started = {}, time.perf_counter()

    def lap(name: str) -> None:
        nonlocal started
        seconds[name] = round(time.perf_counter() - started, 3)
        started = time.perf_counter()

    tokenizer = cached_tokenizer(text, vocab_size, cache)
    lap("tokenizer")
    pairs = cached_pairs(tokenizer, text, cache)
    lap("map")
    batches = TokenBatches(pairs, BATCH_TOKENS, max_length=256)
    lap("batches")
    plan = batches.epoch(0)
    lap("epoch")
    batches.batch(plan[0])
    lap("first_batch")
    return dict(laps=seconds, batches=len(plan))


STAGES: dict[str, Callable[[StreamedSplit, Path, int], dict[str, Any]]] = dict(
    learn=learn, encode=encode, start=start
)


def peak_bytes() -> int:
    """The most memory that this process has held, mapped files included."""
    # Not getrusage, which counts what the parent held when it started this process.
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise OSError("this system does not say how much memory a process held")


def _paths(folder: Path) -> tuple[Path, Path]:
    return folder / "text.source", folder / "text.target"


if __name__ == "__main__":
    main()
