"""The searches of chapter 16: many beams, length penalties and rules to stop on one test set."""

from collections.abc import Callable, Sequence
from typing import Any

from transformer.data.parallel import Split
from transformer.inference.batches import pad
from transformer.inference.decoding import Hypothesis
from transformer.inference.sentences import encode_sentences
from transformer.inference.translator import Translator
from transformer.model.transformer import Transformer
from transformer_book.studies.decoding.study import RECORD as RECORD
from transformer_book.studies.decoding.study import search_name
from transformer_book.studies.decoding.study import write_study as write_study
from transformer_book.studies.decoding.trace import (
    Penalty,
    SearchTrace,
    exact_search,
    log_probabilities,
    trace_search,
)
from transformer_book.studies.recording import Recording, shipped

BEAM_SIZES = (1, 2, 4, 8, 16, 32)
# Every beam size is searched with these length penalties,
PENALTIES: tuple[Penalty, ...] = ((0.0, "gnmt"), (0.6, "gnmt"), (0.6, "fairseq"))
# and the paper's beam size also with these, and with every rule to stop.
SWEEP: tuple[Penalty, ...] = (
    *((alpha, "gnmt") for alpha in (0.3, 1.0, 1.5)),
    *((alpha, "fairseq") for alpha in (0.3, 1.0)),
)
PAPER_BEAM = 4


def heading() -> dict[str, Any]:
    """Return the model and the corpus in the record."""
    return shipped()[-1]


def fill(recording: Recording) -> None:
    """Make the record."""
    content = recording.content
    if "choices" not in content:
        translator, corpus, _ = shipped()
        content.update(study_searches(translator, corpus.test, say=recording.say))
        recording.save("all searches")


def encoded(translator: Translator, texts: list[str]) -> list[list[int]]:
    """Return the ids of source sentences with EOS."""
    rows = encode_sentences(texts, texts, translator.tokenizer, translator.model.longest)
    return [[*ids, translator.tokenizer.eos_id] for ids in rows]


def study_searches(
    translator: Translator,
    split: Split,
    beam_sizes: Sequence[int] = BEAM_SIZES,
    widest: int = 512,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Record the choice of each search for a ``BeamStudy``, and the best possible one."""
    ids = encoded(translator, split.source)
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    notes = Notes(translator.tokenizer.decode, len(ids))
    traces: dict[int, SearchTrace] = {}
    for beam_size in beam_sizes:
        penalties = PENALTIES + (SWEEP if beam_size == PAPER_BEAM else ())
        for rows in _portions(order, max(10, 1600 // beam_size)):
            source = pad(translator.model, [ids[i] for i in rows])
            found = trace_search(translator.model, source, beam_size, penalties)
            traces.update(zip(rows, found, strict=True))
        notes.add(beam_size, [traces[i] for i in range(len(ids))], penalties)
        say(f"beam {beam_size}: done")
    for i in order:
        if not traces[i].proven(0.0) and beam_sizes[-1] < widest:
            source, wider = pad(translator.model, [ids[i]]), 4 * beam_sizes[-1]
            traces[i] = exact_search(translator.model, source, beam_size=wider, widest=widest)[0]
    notes.add_exact([traces[i] for i in range(len(ids))])
    say("exact: done")
    return notes.record() | opinions(translator, split)


def opinions(translator: Translator, split: Split) -> dict[str, list[float]]:
    """Compute the log-probabilities of the references, and of an empty translation."""
    ids = encoded(translator, split.source)
    targets = [translator.tokenizer.encode(text) for text in split.target]
    totals = dict(reference=[0.0] * len(ids), empty=[0.0] * len(ids))
    assert isinstance(translator.model, Transformer)
    for rows in _portions(sorted(range(len(ids)), key=lambda i: len(ids[i])), 50):
        source = pad(translator.model, [ids[i] for i in rows])
        given: dict[str, list[list[int]]] = dict(
            reference=[targets[i] for i in rows], empty=[[] for _ in rows]
        )
        for name, translations in given.items():
            found = log_probabilities(translator.model, source, translations).tolist()
            for i, total in zip(rows, found, strict=True):
                totals[name][i] = round(total, 4)
    return totals


class Notes:
    """The different translations of each sentence, and the one that each search chose."""

    def __init__(self, decode: Callable[[list[int]], str], count: int):
        self.decode = decode
        self.places: list[dict[tuple[int, ...] | None, int]] = [{} for _ in range(count)]
        self.sentences: list[list[list[Any]]] = [[] for _ in range(count)]
        self.choices: dict[str, list[int]] = {}
        self.steps: dict[str, float] = {}
        self.proven: list[int] = []

    def add(
        self, beam_size: int, traces: Sequence[SearchTrace], penalties: Sequence[Penalty]
    ) -> None:
        """Add the choices of a beam under each penalty and each rule to stop."""
        early = dict(
            full=[trace.first_full() or trace.limit for trace in traces],
            leading=[trace.first_leading() or trace.limit for trace in traces],
        )
        for alpha, penalty in penalties:
            rules = dict(safe=[t.settled(alpha, penalty) or t.limit for t in traces])
            if beam_size == PAPER_BEAM and (alpha, penalty) in PENALTIES:
                rules |= early
            for stop, steps in rules.items():
                name = search_name(beam_size, alpha, penalty, stop)
                pairs = zip(traces, steps, strict=True)
                self._choose(name, [trace.best(alpha, penalty, step) for trace, step in pairs])
                self.steps[name] = round(sum(steps) / len(steps), 3)

    def add_exact(self, traces: Sequence[SearchTrace]) -> None:
        """Add the most probable translations, and which of them are proven to be that."""
        name = search_name("exact", 0.0, "gnmt", "safe")
        self._choose(name, [trace.best(0.0) for trace in traces])
        self.proven = [int(trace.proven(0.0)) for trace in traces]

    def record(self) -> dict[str, Any]:
        """Return everything."""
        names = ("sentences", "choices", "steps", "proven")
        return {name: getattr(self, name) for name in names}

    def _choose(self, name: str, found: Sequence[Hypothesis | None]) -> None:
        self.choices[name] = [self._place(i, best) for i, best in enumerate(found)]

    def _place(self, sentence: int, best: Hypothesis | None) -> int:
        """Return the place of a translation among those of its sentence; None counts as ""."""
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
