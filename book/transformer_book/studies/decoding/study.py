"""The searches of chapter 17 on a test set: many beams, length penalties, rules to stop."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from transformer.data.parallel import Split
from transformer.inference.batches import pad
from transformer.inference.decoding import Hypothesis
from transformer.inference.sentences import encode_sentences
from transformer.inference.translator import Translator
from transformer.model.transformer import Transformer
from transformer.recipes.record import read_record
from transformer.saving.files import write_atomically
from transformer_book.studies.decoding.trace import (
    Penalty,
    SearchTrace,
    exact_search,
    log_probabilities,
    trace_search,
)
from transformer_book.studies.recording import Recording, shipped

#: The translations of the shipped weights under all searches.
RECORD = Path(__file__).parent / "record.json"

BEAM_SIZES = (1, 2, 4, 8, 16, 32)
# Every beam size is searched with these length penalties,
PENALTIES: tuple[Penalty, ...] = ((0.0, "gnmt"), (0.6, "gnmt"), (0.6, "fairseq"))
# and the paper's beam size also with these, and with every rule to stop.
SWEEP: tuple[Penalty, ...] = (
    *((alpha, "gnmt") for alpha in (0.3, 1.0, 1.5)),
    *((alpha, "fairseq") for alpha in (0.3, 1.0)),
)
PAPER_BEAM = 4


@dataclass(frozen=True)
class BeamStudy:
    """The translations of a test set by one model under many searches.

    The methods take the beam size of a search, then optionally the exponent and the formula of
    the length penalty ("gnmt" or "fairseq"), and the stopping rule: "safe" as in
    :func:`~transformer.inference.decoding.beam_search`, "full" once ``beam_size`` translations
    have ended, "leading" once an ending is the most probable of all continuations. The beam size
    "exact" selects the most probable translation of all, or the best of the widest beam where no
    translation was proven to be that. A search that was not recorded raises KeyError.
    """

    record: dict[str, Any]

    def steps(self, *search: str | int | float) -> float:
        """Return the mean number of decoding steps per sentence."""
        return self.record["steps"][search_name(*search)]

    @property
    def references(self) -> Float[np.ndarray, " sentences"]:
        """Log-probability of each reference under the model."""
        return np.array(self.record["reference"])

    @property
    def empty(self) -> Float[np.ndarray, " sentences"]:
        """Log-probability of the empty translation of each sentence."""
        return np.array(self.record["empty"])

    def __len__(self) -> int:
        return len(self.record["sentences"])

    def searches(self) -> list[str]:
        """Return the names of all searches, such as "4 0.6 gnmt safe"."""
        return list(self.record["choices"])

    def translations(self, *search: str | int | float) -> list[str]:
        """Return the text of each translation, in the order of the test set."""
        return [text for text, _, _ in self._chosen(search)]

    def lengths(self, *search: str | int | float) -> Int[np.ndarray, " sentences"]:
        """Return the number of tokens of each translation, including EOS."""
        return np.array([n for _, n, _ in self._chosen(search)])

    def log_probabilities(self, *search: str | int | float) -> Float[np.ndarray, " sentences"]:
        """Return the log-probability of each translation."""
        return np.array([total for _, _, total in self._chosen(search)])

    def proven(self) -> Bool[np.ndarray, " sentences"]:
        """Return for which sentences "exact" is proven to be the most probable translation."""
        return np.array(self.record["proven"], dtype=bool)

    def _chosen(self, search: tuple[str | int | float, ...]) -> list[Any]:
        choice = self.record["choices"][search_name(*search)]
        return [s[place] for s, place in zip(self.record["sentences"], choice, strict=True)]


def search_name(
    beam_size: str | int | float,
    alpha: str | int | float = 0.0,
    penalty: str | int | float = "gnmt",
    stop: str | int | float = "safe",
) -> str:
    """Name a search, such as "4 0.6 gnmt safe"; see :class:`BeamStudy`."""
    return f"{beam_size} {float(alpha)} {penalty} {stop}"


def write_study(path: Path | str, record: dict[str, Any]) -> Path:
    """Write a study, one line per part; the same study makes the same file."""
    parts = [
        f"{json.dumps(name)}: {json.dumps(part, ensure_ascii=False, separators=(',', ':'))}"
        for name, part in record.items()
    ]
    text = "{\n" + ",\n".join(parts) + "\n}\n"
    write_atomically(Path(path), lambda p: p.write_text(text, encoding="utf-8"))
    return Path(path)


def recorded_study(path: Path | str = RECORD) -> BeamStudy:
    """Read a recorded study; by default that of the shipped weights on their test set."""
    return BeamStudy(read_record(path))


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
