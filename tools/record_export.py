"""Translate a test set with the shipped model as it is and as CTranslate2 runs it, and compare.

    python tools/record_export.py

The record, transformer/lab/speed/export.json, says how many translations are equal, what
int8 costs in BLEU, and how much time both take. It belongs to the weights that ship with the
package: make it again when they are replaced. It takes a minute of one core.
"""

import argparse
import hashlib
import importlib.metadata
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from transformer.data.corpora import load_corpus
from transformer.data.parallel import Split
from transformer.inference.metrics import bleu
from transformer.inference.pretrained import locate_pretrained
from transformer.inference.translator import Translator
from transformer.interop import CTranslate2Translator, to_ctranslate2
from transformer.recipes.record import describe_environment, write_record

RECORD = Path(__file__).parent.parent / "transformer/lab/speed/export.json"
MODEL = "tatoeba-en-de"
SEARCHES: dict[str, dict[str, Any]] = {
    "greedy": dict(beam_size=1),
    "beam 4, alpha 0": dict(beam_size=4, alpha=0.0),
    "beam 4, alpha 0.6 (gnmt)": dict(beam_size=4, alpha=0.6),
    "beam 4, alpha 1 (fairseq)": dict(beam_size=4, alpha=1.0, penalty="fairseq"),
}
QUANTIZATIONS = (None, "int8")


def main() -> None:
    """Make the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=RECORD)
    parser.add_argument("--pairs", type=int, default=1000, help="the first so many of the test set")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    corpus = load_corpus(MODEL)
    weights = (locate_pretrained(MODEL) / "model.safetensors").read_bytes()
    record = dict(
        command="python tools/record_export.py",
        environment=describe_environment(),
        ctranslate2=importlib.metadata.version("ctranslate2"),
        model=dict(name=MODEL, sha256=hashlib.sha256(weights).hexdigest()),
        corpus=dict(name=corpus.name, licence=corpus.licence, sha256=corpus.checksum, split="test"),
    )
    record |= compare(Translator.from_pretrained(MODEL), corpus.test, arguments.pairs)
    print(write_record(arguments.output, record))


def compare(translator: Translator, split: Split, pairs: int) -> dict[str, Any]:
    """Translate with ours and with each quantization, on one thread, by every search."""
    source, target = list(split.source[:pairs]), list(split.target[:pairs])
    found: dict[str, Any] = dict(pairs=len(source), megabytes={}, searches={})
    with tempfile.TemporaryDirectory() as folder:
        engines: dict[str, Any] = dict(ours=translator)
        for quantization in QUANTIZATIONS:
            name = quantization or "float32"
            to_ctranslate2(translator, path := Path(folder) / name, quantization)
            found["megabytes"][name] = round(os.path.getsize(path / "model.bin") / 1e6, 1)
            engines[name] = CTranslate2Translator(path, threads=1)
        for label, options in SEARCHES.items():
            rows, ours = {}, None
            for name, engine in engines.items():
                started = time.process_time()
                texts = engine.translate(source, **options)
                seconds, score = time.process_time() - started, bleu(texts, target)
                ours = texts if ours is None else ours
                rows[name] = dict(
                    bleu=round(score.score, 3),
                    equal=sum(a == b for a, b in zip(ours, texts, strict=True)),
                    cpu_seconds=round(seconds, 2),
                )
                found["signature"] = score.signature
                print(label, name, rows[name], flush=True)
            found["searches"][label] = rows
    return found


if __name__ == "__main__":
    main()
