"""What all recorders share: options, facts about the shipped model, a write after every item.

``python -m transformer_book.studies.record STUDY`` makes a record again. Ctrl-C stops it, and the
same command continues: the items that the file holds already are kept. A record has one
version of the code, so after a change of the code it is made anew.
"""

import argparse
import hashlib
import json
import lzma
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from transformer.data.corpora import Corpus, load_corpus
from transformer.inference.translator import Translator
from transformer.recipes.architectures import architecture
from transformer.recipes.presets import Preset
from transformer.recipes.record import (
    describe_environment,
    read_record,
    recorded_preset,
    write_record,
)
from transformer.saving.files import write_atomically
from transformer.saving.locate import locate

#: The model and the corpus that come with the package.
SHIPPED = "tatoeba-en-de"


def parser(doc: str | None, output: Path | None, minutes: bool = False) -> argparse.ArgumentParser:
    """Make the parser of a recorder's options, described by the first line of ``doc``."""
    made = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    made.add_argument("--output", type=Path, default=output, help="file of the record")
    if minutes:
        made.add_argument(
            "--minutes", type=float, default=float("inf"), help="begin no item after that time"
        )
    return made


def texts_file(record: Path) -> Path:
    """Return the path of the translations that a record's scores were computed from."""
    return record.with_suffix(".translations.json.xz")


def stored_texts(record: Path) -> dict[str, list[str]]:
    """Read the translations beside a record; empty if there is no record, or it has none."""
    path = texts_file(record)
    there = record.exists() and path.exists()
    return json.loads(lzma.decompress(path.read_bytes())) if there else {}


def write_texts(record: Path, texts: dict[str, list[str]]) -> None:
    """Write translations beside a record; runs share many, which gzip would see too late."""
    packed = lzma.compress(json.dumps(texts, ensure_ascii=False, indent=0).encode(), preset=9)
    write_atomically(texts_file(record), lambda path: path.write_bytes(packed))


class Recording:
    """A record that is written after every item, by ``python -m module options``.

    What the file holds is kept, unless ``keep`` is False.
    ``digits`` limits the decimals of every number outside the heading. Translations in ``texts``,
    by item, are written beside the record.
    """

    def __init__(
        self,
        path: Path,
        module: str,
        options: Sequence[str] = (),
        keep: bool = True,
        digits: int | None = None,
        **heading: Any,
    ):
        self.path, self.digits, self.heading = path, digits, heading
        self.write, self.until = write_record, float("inf")
        keep = keep and path.exists()
        self.content: dict[str, Any] = read_record(path) if keep else {}
        self.texts = stored_texts(path) if keep else {}
        environment = describe_environment()
        made_by, code = self.content.get("environment", {}).get("code"), environment["code"]
        if keep and made_by != code:
            raise ValueError(
                f"{path} holds items that code version {made_by} made, and this is {code}: delete "
                f"the file to start afresh, or check out that commit to continue"
            )
        for name in heading.keys() & self.content.keys():
            if self.content[name] != json.loads(json.dumps(heading[name])):
                raise ValueError(
                    f"{path} was recorded with a different value of {name}: delete the file to "
                    f"start afresh"
                )
        command = " ".join(["python -m", module, *options])
        self.content |= dict(command=command, environment=environment) | heading
        self._before = self.content.get("cpu_seconds", 0) - time.process_time()

    @property
    def cpu_seconds(self) -> int:
        """CPU time of the recording so far, over all sittings."""
        return round(self._before + time.process_time())

    def say(self, line: str) -> None:
        """Print a line with the CPU time of the recording so far."""
        print(f"{self.cpu_seconds} s of CPU: {line}", flush=True)

    def save(self, line: str) -> None:
        """Write the record and its CPU time, print a line, and stop after the time ``until``."""
        self.content["cpu_seconds"] = self.cpu_seconds
        if self.texts:
            write_texts(self.path, self.texts)
        written = self.content if self.digits is None else rounded(self.content, self.digits)
        self.write(self.path, written | self.heading)  # settings such as 1e-9 are no measurements
        self.say(line)
        if time.time() > self.until:
            raise SystemExit("the time is over; the same command continues from here")


def rounded(value: Any, digits: int) -> Any:
    """Round every number of a nested record."""
    if isinstance(value, dict):
        return {key: rounded(part, digits) for key, part in value.items()}
    if isinstance(value, list):
        return [rounded(part, digits) for part in value]
    return round(value, digits) if isinstance(value, float) else value


def study_module(name: str) -> Any:
    """Import a study by the recorder's name: a folder's ``study``, or one of its other modules."""
    return import_module(f"transformer_book.studies.{name if '.' in name else f'{name}.study'}")


def record_study(doc: str | None, studies: Mapping[str, int | None]) -> None:
    """Make what is missing from the record of one study; the command line names it.

    A study is a module with RECORD, its path, HEADING, its settings, or ``heading()``, which
    returns them, and one of these:

    - ``missing(runs)`` yields each run that the record lacks, with a line to print;
    - ``fill(recording)`` adds what the record and its translations lack, and saves every item;
    - ``record(path, until, command)`` keeps a record of its own form.
    """
    options = parser(doc, None, minutes=True)
    options.add_argument("study", choices=studies)
    chosen = options.parse_args()
    study = study_module(chosen.study)
    torch.set_num_threads(1)
    path, until = chosen.output or study.RECORD, time.time() + 60 * chosen.minutes
    module = "transformer_book.studies.record"
    if hasattr(study, "record"):
        study.record(path, until, f"python -m {module} {chosen.study}")
        return
    heading = study.heading() if hasattr(study, "heading") else study.HEADING
    recording = Recording(path, module, [chosen.study], digits=studies[chosen.study], **heading)
    recording.until, recording.write = until, getattr(study, "write_study", write_record)
    if hasattr(study, "fill"):
        study.fill(recording)
        return
    runs = recording.content.setdefault("runs", [])
    for run, line in study.missing(runs):
        runs.append(run)
        recording.save(line)


def corpus_facts(corpus: Corpus, split: str) -> dict[str, Any]:
    """Name a corpus and one of its splits in a record."""
    return dict(name=corpus.name, licence=corpus.licence, sha256=corpus.checksum, split=split)


def shipped() -> tuple[Translator, Corpus, dict[str, Any]]:
    """Load the shipped model and its corpus; return them with the record's heading for both."""
    corpus = load_corpus(SHIPPED)
    weights = (locate(SHIPPED).folder / "model.safetensors").read_bytes()
    model = dict(name=SHIPPED, sha256=hashlib.sha256(weights).hexdigest())
    heading = dict(model=model, corpus=corpus_facts(corpus, "test"))
    return Translator.from_pretrained(SHIPPED), corpus, heading


def same_recipe(record: dict[str, Any], preset: Preset) -> bool:
    """Whether a record is of this preset; a field that it lacks had the default then."""

    def agrees(then: dict[str, Any], now: Any) -> bool:
        values = [(getattr(now, field.name), field) for field in fields(now)]
        return all(
            agrees(then.get(field.name, {}), value)
            if is_dataclass(value)
            else then.get(field.name, field.default) == value
            for value, field in values
        )

    kind = record.get("architecture", architecture(preset.model))
    return kind == architecture(preset.model) and agrees(recorded_preset(record), preset)
