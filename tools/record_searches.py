"""Translate a test set under many searches and record what each of them chose.

    python tools/record_searches.py

Chapter 14 draws from the record, transformer/lab/search/beams.json. It belongs to the
weights that ship with the package: make it again when they are replaced. It takes a quarter of an
hour of one core.
"""

import argparse
import hashlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from transformer.data.corpora import load_corpus
from transformer.data.parallel import Split
from transformer.inference.decoding import Hypothesis
from transformer.inference.pretrained import locate_pretrained
from transformer.inference.translator import Translator
from transformer.lab.search.study import RECORD, search_name, write_study
from transformer.lab.search.trace import (
    Penalty,
    SearchTrace,
    exact_search,
    log_probabilities,
    trace_search,
)
from transformer.recipes.record import describe_environment

MODEL = "tatoeba-en-de"
BEAM_SIZES = (1, 2, 4, 8, 16, 32)
# Every beam size is searched under these length penalties,
PENALTIES: tuple[Penalty, ...] = ((0.0, "gnmt"), (0.6, "gnmt"), (0.6, "fairseq"))
# and the paper's beam size under these as well, and with every rule to stop.
SWEEP: tuple[Penalty, ...] = (
    *((alpha, "gnmt") for alpha in (0.3, 1.0, 1.5)),
    *((alpha, "fairseq") for alpha in (0.3, 1.0)),
)
PAPER_BEAM = 4


def main() -> None:
    """Make the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=RECORD)
    output = parser.parse_args().output
    torch.set_num_threads(1)
    translator, corpus = Translator.from_pretrained(MODEL), load_corpus(MODEL)
    weights = (locate_pretrained(MODEL) / "model.safetensors").read_bytes()
    record = dict(
        command="python tools/record_searches.py",
        environment=describe_environment(),
        model=dict(name=MODEL, sha256=hashlib.sha256(weights).hexdigest()),
        corpus=dict(name=corpus.name, licence=corpus.licence, sha256=corpus.checksum, split="test"),
    )
    started = time.process_time()

    def say(line: str) -> None:
        print(f"{time.process_time() - started:.0f} s of CPU: {line}", flush=True)

    record |= study_searches(translator, corpus.test, say=say)
    record["cpu_seconds"] = round(time.process_time() - started)
    print(write_study(output, record))


def study_searches(
    translator: Translator,
    split: Split,
    beam_sizes: Sequence[int] = BEAM_SIZES,
    widest: int = 512,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Return what a BeamStudy reads: what each search chose, and the best that any could."""
    ids = [translator._encode(text, f"source[{i}]") for i, text in enumerate(split.source)]
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    notes, traces = Notes(translator.tokenizer.decode, len(ids)), [None] * len(ids)
    for beam_size in beam_sizes:
        penalties = PENALTIES + (SWEEP if beam_size == PAPER_BEAM else ())
        for rows in _portions(order, max(10, 1600 // beam_size)):
            source = translator._pad([ids[i] for i in rows])
            found = trace_search(translator.model, source, beam_size, penalties)
            for i, trace in zip(rows, found, strict=True):
                traces[i] = trace
        notes.add(beam_size, traces, penalties)
        say(f"beam {beam_size}: done")
    for i in order:
        if not traces[i].proven(0.0) and beam_sizes[-1] < widest:
            source, wider = translator._pad([ids[i]]), 4 * beam_sizes[-1]
            traces[i] = exact_search(translator.model, source, beam_size=wider, widest=widest)[0]
    notes.add_exact(traces)
    say("exact: done")
    return notes.record() | opinions(translator, split)


def opinions(translator: Translator, split: Split) -> dict[str, list[float]]:
    """Log-probabilities of the references, and of saying nothing."""
    ids = [translator._encode(text, f"source[{i}]") for i, text in enumerate(split.source)]
    targets = [translator.tokenizer.encode(text) for text in split.target]
    totals = dict(reference=[0.0] * len(ids), empty=[0.0] * len(ids))
    for rows in _portions(sorted(range(len(ids)), key=lambda i: len(ids[i])), 50):
        source = translator._pad([ids[i] for i in rows])
        given = dict(reference=[targets[i] for i in rows], empty=[[] for _ in rows])
        for name, translations in given.items():
            found = log_probabilities(translator.model, source, translations).tolist()
            for i, total in zip(rows, found, strict=True):
                totals[name][i] = round(total, 4)
    return totals


class Notes:
    """Collects each sentence's different translations, and which of them each search chose."""

    def __init__(self, decode: Callable[[list[int]], str], count: int):
        self.decode = decode
        self.places: list[dict[tuple[int, ...] | None, int]] = [{} for _ in range(count)]
        self.sentences: list[list[list]] = [[] for _ in range(count)]
        self.choices: dict[str, list[int]] = {}
        self.steps: dict[str, float] = {}
        self.proven: list[int] = []

    def add(
        self, beam_size: int, traces: Sequence[SearchTrace], penalties: Sequence[Penalty]
    ) -> None:
        """Note what a beam returns under each penalty and each rule to stop."""
        stops = dict(full=SearchTrace.first_full, leading=SearchTrace.first_leading)
        early = {
            name: [first(trace) or trace.limit for trace in traces] for name, first in stops.items()
        }
        for alpha, penalty in penalties:
            rules = dict(safe=[trace.settled(alpha, penalty) for trace in traces])
            if beam_size == PAPER_BEAM and (alpha, penalty) in PENALTIES:
                rules |= early
            for stop, steps in rules.items():
                name = search_name(beam_size, alpha, penalty, stop)
                pairs = zip(traces, steps, strict=True)
                self._choose(name, [trace.best(alpha, penalty, step) for trace, step in pairs])
                self.steps[name] = round(sum(steps) / len(steps), 3)

    def add_exact(self, traces: Sequence[SearchTrace]) -> None:
        """Note the most probable translations, and where they are proven to be that."""
        name = search_name("exact", 0.0, "gnmt", "safe")
        self._choose(name, [trace.best(0.0) for trace in traces])
        self.proven = [int(trace.proven(0.0)) for trace in traces]

    def record(self) -> dict[str, Any]:
        """All of it."""
        names = ("sentences", "choices", "steps", "proven")
        return {name: getattr(self, name) for name in names}

    def _choose(self, name: str, found: Sequence[Hypothesis | None]) -> None:
        self.choices[name] = [self._place(i, best) for i, best in enumerate(found)]

    def _place(self, sentence: int, best: Hypothesis | None) -> int:
        """The place of a translation among those of its sentence; "" if there is none at all."""
        tokens, total = None, float("-inf")
        if best is not None:
            tokens, total = tuple(best.tokens), round(best.log_probability, 4)
        places = self.places[sentence]
        if tokens not in places:
            places[tokens] = len(places)
            text = self.decode(list(tokens or ())).strip()
            self.sentences[sentence].append([text, len(tokens or ()) + 1, total])
        return places[tokens]


def _portions(rows: list[int], size: int) -> list[list[int]]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


if __name__ == "__main__":
    main()
