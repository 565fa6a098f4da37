"""Compare the speed with that of other implementations, as ratios: ``make bench``.

In every round all programs do the same work in turn, so that a busy machine slows all of them. A
ratio compares two programs within one round; the median of the ratios and their range are printed
and recorded. With one thread the clock counts CPU seconds, with two threads wall-clock seconds.

Each part runs in its own process, because threads, allocator and peak memory belong to a process.
"""

import argparse
import atexit
import gc
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from transformer.data.batching import Batch, TokenBatches, encode_pairs
from transformer.data.corpora import load_corpus
from transformer.fast import enable
from transformer.inference.decoding import beam_search, greedy_search
from transformer.inference.translator import Translator
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer.recipes.record import describe_environment, write_record
from transformer_book.speed.comparison import RECORD, Row, speed_table, summarise
from transformer_book.speed.peers import OURS, OURS_ON_MKL, PEERS, require

SIZES = {
    "tiny": TransformerConfig.tiny(8000, dropout=0.1),
    "small": TransformerConfig(8000, d_model=256, d_ff=1024, num_heads=4, num_layers=3),
    "base": TransformerConfig.base(8000),
}
# Keeps freed memory instead of returning it to the system.
ALLOCATOR = {
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TRIM_THRESHOLD_": "8589934592",
    "MALLOC_TOP_PAD_": "268435456",
}
Task = Callable[[], int]


@dataclass(frozen=True)
class Part:
    """One table: its programs, the unit of their speed, and their environment."""

    title: str
    unit: str
    tasks: Callable[[], dict[str, Task]]
    threads: int = 1
    rounds: int = 7
    environment: dict[str, str] = field(default_factory=dict)


# ---------------------------------------------------------------------- training


def batches_of(budget: int, shuffled: bool, count: int = 2) -> list[Batch]:
    """Make a few batches of the Tatoeba pairs, of similar or of mixed lengths."""
    tokenizer = Translator.from_pretrained("tatoeba-en-de").tokenizer
    pairs = encode_pairs(tokenizer, load_corpus("tatoeba-en-de").train)
    batches = TokenBatches(pairs, budget)
    if not shuffled:
        return [batches.batch(rows) for rows in batches.epoch(0)[:count]]
    order = np.random.default_rng(0).permutation(len(pairs))
    longest = np.maximum(pairs.source.lengths(order), pairs.target.lengths(order))
    fits = np.maximum.accumulate(longest) * np.arange(1, len(order) + 1) <= budget
    rows = int(fits.sum())
    return [batches.batch(order[i * rows : (i + 1) * rows]) for i in range(count)]


def training_step(name: str, config: TransformerConfig, batches: list[Batch]) -> Task:
    """Make a task that takes one step on each batch."""
    torch.manual_seed(0)
    peer = PEERS[name](config)
    optimizer = torch.optim.Adam(peer.model.parameters(), fused=True)

    def step() -> int:
        with products(name):
            for batch in batches:
                peer.loss(batch).backward()
                optimizer.step()
                optimizer.zero_grad()
        return sum(batch.num_target_tokens for batch in batches)

    return step


def products(name: str) -> AbstractContextManager[Any]:
    """Turn oneDNN off for the row of this package that uses MKL."""
    return torch.backends.mkldnn.flags(enabled=False) if name == OURS_ON_MKL else nullcontext()


def train(size: str, budget: int, shuffled: bool = False) -> dict[str, Task]:
    """Train each program on the same batches."""
    batches = batches_of(budget, shuffled, count=1 if size == "base" else 2)
    return {name: training_step(name, SIZES[size], batches) for name in PEERS}


def train_on_threads() -> dict[str, Task]:
    """Train this package on one and on two threads."""
    step = training_step(OURS, SIZES["base"], batches_of(1024, False, count=1))

    def on(threads: int) -> int:
        torch.set_num_threads(threads)
        return step()

    return {"two threads": partial(on, 2), "one thread": partial(on, 1)}


def peak_memory(name: str) -> tuple[float, float]:
    """Return the peak MiB of this process and of its tensors, in steps on 4,096 tokens each."""
    step = training_step(name, SIZES["small"], batches_of(4096, False))
    step()
    whole = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    tensors = {x.untyped_storage().data_ptr(): x.untyped_storage().nbytes()
               for x in gc.get_objects() if type(x) in (Tensor, torch.nn.Parameter)}  # fmt: skip
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        step()
    changes = [(event.start_ns(), event.nbytes())
               for event in recorded.profiler.kineto_results.events()
               if event.name() == "[memory]"]  # fmt: skip
    most = max(accumulate(size for _, size in sorted(changes)))
    return whole, (sum(tensors.values()) + most) / 2**20


# ---------------------------------------------------------------------- translation


def translate(batch_size: int, beam_size: int, sentences: int) -> dict[str, Task]:
    """Translate with the shipped model in three programs, with the same weights."""
    from transformer.interop.ctranslate2 import to_ctranslate2
    from transformer.interop.marian_export import to_marian

    translator = Translator.from_pretrained("tatoeba-en-de")
    with tempfile.TemporaryDirectory() as folder:
        served_folder, marian_folder = f"{folder}/ctranslate2", f"{folder}/marian"
        to_ctranslate2(translator, served_folder)
        to_marian(translator, marian_folder)
        pieces = json.loads(Path(served_folder, "shared_vocabulary.json").read_text())
        engine = require("ctranslate2").Translator(
            served_folder, inter_threads=1, intra_threads=1, compute_type="float32"
        )
        marian = require("transformers").MarianMTModel.from_pretrained(marian_folder).eval()
    texts = load_corpus("tatoeba-en-de").test.source[:sentences]
    ids = sorted(([*translator.tokenizer.encode(t), 2] for t in texts), key=len, reverse=True)
    batches = [ids[i : i + batch_size] for i in range(0, len(ids), batch_size)]

    def pad(rows: list[list[int]]) -> Tensor:
        longest = max(map(len, rows))
        return torch.tensor([row + [0] * (longest - len(row)) for row in rows])

    def ours() -> int:
        return sum(len(beam_search(translator.model, pad(rows), beam_size)) for rows in batches)

    def served() -> int:
        options = dict(beam_size=beam_size, length_penalty=0.6, max_decoding_length=100)
        words = ([[pieces[i] for i in row[:-1]] for row in rows] for rows in batches)
        return sum(len(engine.translate_batch(rows, **options)) for rows in words)

    @torch.inference_mode()
    def hugging_face() -> int:
        options, found = dict(num_beams=beam_size, do_sample=False, max_new_tokens=100), 0
        for source in map(pad, batches):
            mask = (source != 0).long()
            found += len(marian.generate(input_ids=source, attention_mask=mask, **options))
        return found

    return {OURS: ours, "CTranslate2, float32": served, "Hugging Face Marian": hugging_face}


def long_outputs() -> dict[str, Task]:
    """Decode greedily to fixed lengths; the unit is a token of a sentence."""
    torch.manual_seed(0)
    model = Transformer(SIZES["small"])
    enable(model)
    with torch.no_grad():
        model.output_weight[model.config.eos_id] = 0  # its logit is 0 and never the largest
    source = torch.randint(3, 8000, (16, 20))

    def decode(length: int) -> int:
        found = greedy_search(model, source, length)
        if any(len(best.tokens) != length for best in found):
            raise AssertionError("a sentence ended early")
        return length * len(found)

    return {f"{n} tokens": partial(decode, n) for n in (64, 128, 256, 512)}


# ---------------------------------------------------------------------- start


def start() -> dict[str, Task]:
    """Start Python anew for each task; the ratios are to the import of torch alone."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    Transformer(TransformerConfig.base()).save_pretrained(folder)
    command = [sys.executable, "-m", "transformer.cli"]
    load = "import transformer as t; t.{}.from_pretrained({!r})"
    lines = {
        "import torch": [sys.executable, "-c", "import torch"],
        "transformer translate TEXT": [*command, "translate", "Where is the train station?"],
        "Translator.from_pretrained": [
            sys.executable, "-c", load.format("Translator", "tatoeba-en-de"),
        ],
        "base model from a file": [sys.executable, "-c", load.format("Transformer", str(folder))],
        "transformer --help": [*command, "--help"],
    }  # fmt: skip

    def run(line: list[str]) -> int:
        subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
        return 1

    return {name: partial(run, line) for name, line in lines.items()}


def requests() -> dict[str, Task]:
    """Translate sentences together and one by one, as a server does."""
    translator = Translator.from_pretrained("tatoeba-en-de")
    texts = load_corpus("tatoeba-en-de").test.source[:128]

    def alone() -> int:
        return sum(bool(translator.translate(text)) for text in texts)

    return {"together": lambda: len(translator.translate(texts)), "one by one": alone}


PARTS = {
    "start": Part("Start, one thread, whole process", "starts", start, rounds=5),
    "requests": Part("Requests of one sentence, beam 4", "sentences", requests, rounds=5),
    "train-tiny": Part("Training, tiny (4 layers, d_model 128), batches of 2,048 tokens", "tokens",
                       partial(train, "tiny", 2048)),
    "train-small": Part("Training, small (3 layers, d_model 256), batches of 2,048 tokens",
                        "tokens", partial(train, "small", 2048)),
    "train-base": Part("Training, base (6 layers, d_model 512), batches of 1,024 tokens", "tokens",
                       partial(train, "base", 1024), rounds=3),
    "train-shuffled": Part("Training, small, unsorted batches of 2,048 tokens", "tokens",
                           partial(train, "small", 2048, True)),
    "train-tiny-allocator": Part("Training, tiny, the allocator tuned for all", "tokens",
                                 partial(train, "tiny", 2048), environment=ALLOCATOR),
    "train-small-allocator": Part("Training, small, the allocator tuned for all", "tokens",
                                  partial(train, "small", 2048), environment=ALLOCATOR),
    "train-threads": Part("Training, base, two threads against one", "tokens", train_on_threads,
                          threads=2, rounds=3),
    "length": Part("Greedy search, small, 16 sentences: tokens per second by length",
                   "tokens", long_outputs, rounds=3),
}  # fmt: skip
for _batch, _count in ((64, 256), (1, 48)):
    for _beam, _search in ((1, "greedy"), (4, "beam 4")):
        PARTS[f"translate-{_batch}-{_beam}"] = Part(
            f"Translation, {_search}, {_batch} at a time, one thread", "sentences",
            partial(translate, _batch, _beam, _count), rounds=5,
        )  # fmt: skip


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of the children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def measure(part: Part) -> dict[str, list[float]]:
    """Measure the units per second of each task in each round, after one round to warm up."""
    clock = cpu_seconds if part.threads == 1 else time.perf_counter
    torch.set_num_threads(part.threads)
    tasks = part.tasks()
    speed: dict[str, list[float]] = {name: [] for name in tasks}
    for i in range(part.rounds + 1):
        for name, task in tasks.items():
            started = clock()
            units = task()
            if i:
                speed[name].append(units / (clock() - started))
    return speed


def in_own_process(*arguments: str, environment: dict[str, str] | None = None) -> Any:
    """Run this module for one part in another process, and return its result."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "found.json"
        threads = {"OMP_NUM_THREADS": "2"} if arguments[-1].endswith("threads") else {}
        subprocess.run(
            [sys.executable, "-m", "transformer_book.speed.bench", "--found", found, *arguments],
            env=os.environ | (environment or {}) | threads,
            check=True,
        )
        return json.loads(found.read_text())


def show(table: dict[str, Any]) -> None:
    """Print the table of a part."""
    rows = [Row(**row) for row in table["rows"]]
    print(f"\n{table['title']}\n{speed_table(table['unit'], rows)}", flush=True)


def main() -> None:
    """Run the parts and print each table; write the record if all ran or --output names a file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", help=f"all, or some of: {', '.join(PARTS)}, memory")
    parser.add_argument(
        "--output", type=Path, help="file of the record; without it, none is written for some parts"
    )
    parser.add_argument("--found", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--memory", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.parts) - {*PARTS, "memory"}:
        parser.error(f"no part named {', '.join(sorted(unknown))}")
    warnings.filterwarnings("ignore", message=".*nested tensors")  # of torch.nn.Transformer
    if options.memory or options.part:
        found = peak_memory(options.memory) if options.memory else measure(PARTS[options.part])
        options.found.write_text(json.dumps(found))
        return

    tables: dict[str, dict[str, Any]] = {}
    for name, part in PARTS.items():
        if options.parts and name not in options.parts:
            continue
        speed = in_own_process("--part", name, environment=part.environment)
        rows = summarise(speed)
        tables[name] = dict(title=part.title, unit=part.unit, rows=rows)
        show(tables[name])
    if not options.parts or "memory" in options.parts:
        peaks = {name: in_own_process("--memory", name) for name in PEERS}
        for i, (key, what) in enumerate((("memory", "the process"), ("tensors", "its tensors"))):
            title = f"Peak memory of {what}, training, small, batches of 4,096 tokens"
            rows = summarise({name: [peak[i]] for name, peak in peaks.items()})
            tables[key] = dict(title=title, unit="MiB", rows=rows)
            show(tables[key])
    output = options.output or (None if options.parts else RECORD)
    if output is not None:
        record = dict(environment=describe_environment(), command="make bench", tables=tables)
        print(f"\n{write_record(output, record)}: written")


if __name__ == "__main__":
    main()
