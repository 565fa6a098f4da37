"""Translate a test set with the shipped model, here and in CTranslate2, and write the record.

    python -m transformer_book.speed.record_export     a minute on one core

The record belongs to the weights that ship with the package: make it again when they are replaced.
"""

import importlib.metadata
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from transformer.data.parallel import Split
from transformer.inference.metrics import bleu
from transformer.inference.translator import Translator
from transformer.interop import CTranslate2Translator, to_ctranslate2
from transformer_book.studies.recording import Recording, parser, shipped

RECORD = Path(__file__).with_name("export.json")
SEARCHES: dict[str, dict[str, Any]] = {
    "greedy": dict(beam_size=1),
    "beam 4, alpha 0": dict(beam_size=4, alpha=0.0),
    "beam 4, alpha 0.6 (gnmt)": dict(beam_size=4, alpha=0.6),
    "beam 4, alpha 1 (fairseq)": dict(beam_size=4, alpha=1.0, penalty="fairseq"),
}
QUANTIZATIONS = (None, "int8")


def main() -> None:
    """Make the record."""
    options = parser(__doc__, RECORD)
    options.add_argument("--pairs", type=int, default=1000, help="of the test set, from its start")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    translator, corpus, heading = shipped()
    heading["ctranslate2"] = importlib.metadata.version("ctranslate2")
    recording = Recording(
        chosen.output, "transformer_book.speed.record_export", keep=False, **heading
    )
    recording.content |= compare(translator, corpus.test.first(chosen.pairs), recording.texts)
    recording.save(str(chosen.output))


def compare(translator: Translator, split: Split, kept: dict[str, list[str]]) -> dict[str, Any]:
    """Translate with this package and with each quantization, on one thread, by every search."""
    found: dict[str, Any] = dict(pairs=len(split), megabytes={}, searches={})
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
                texts = engine.translate(split.source, **options)
                seconds, score = time.process_time() - started, bleu(texts, split.target)
                kept[f"{label}, {name}"] = texts
                ours = ours or texts
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
