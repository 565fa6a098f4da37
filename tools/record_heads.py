"""Measure every head of the shipped model and write the record that chapter 20 draws from.

    python tools/record_heads.py                 all of it, about six minutes of one core
    python tools/record_heads.py --output FILE   and write it elsewhere

What the file already holds is kept, so that a stopped recording goes on where it was. The record
belongs to the weights that ship with the package: delete it and make it again when they are
replaced.
"""

import argparse
import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from transformer.data.corpora import Corpus, load_corpus
from transformer.data.parallel import Split
from transformer.inference.pretrained import locate_pretrained
from transformer.inference.translator import Translator
from transformer.lab.heads.roles import role_scores
from transformer.lab.heads.study import (
    EDITS,
    RECORD,
    UNTRAINED_SEEDS,
    StudyText,
    alignment_errors,
    bleu_without,
    head_groups,
    loss_without,
    plain_scores,
    study_text,
    untrained_scores,
)
from transformer.lab.heads.word_alignment import hand_aligned
from transformer.recipes.record import describe_environment, read_record, write_record

MODEL = "tatoeba-en-de"
PAIRS = 1000
BLEU_PAIRS = 400


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=RECORD)
    output = parser.parse_args().output

    torch.set_num_threads(1)
    corpus, translator = load_corpus(MODEL), Translator.from_pretrained(MODEL)
    weights = (locate_pretrained(MODEL) / "model.safetensors").read_bytes()
    heading = dict(
        command="python tools/record_heads.py",
        corpus=dict(name=corpus.name, licence=corpus.licence, sha256=corpus.checksum, split="test"),
        model=dict(name=MODEL, sha256=hashlib.sha256(weights).hexdigest()),
        environment=describe_environment(),
    )
    record = (read_record(output) if output.exists() else {}) | heading
    before, started = record.get("cpu_seconds", 0), time.process_time()

    def save(line: str) -> None:
        record["cpu_seconds"] = round(before + time.process_time() - started)
        write_record(output, rounded(record))
        print(f"{record['cpu_seconds']} s of CPU: {line}", flush=True)

    study(translator, corpus, record, save=save)


def study(
    translator: Translator,
    corpus: Corpus,
    record: dict[str, Any],
    pairs: int = PAIRS,
    bleu_pairs: int = BLEU_PAIRS,
    aligner_pairs: int = 30_000,
    save: Callable[[str], None] = lambda line: None,
) -> None:
    """Measure all that the record does not hold yet, and add it."""
    model, known = translator.model, "roles" in record
    text = study_text(translator, corpus, pairs, 1 if known else aligner_pairs)
    if not known:
        record |= roles_and_alignments(translator, text)
        save("roles and alignments")
    groups, loss = head_groups(model), record.setdefault("loss", {})
    few = Split(corpus.test.source[:bleu_pairs], corpus.test.target[:bleu_pairs])
    record |= dict(pairs=pairs, bleu_pairs=bleu_pairs)

    def measure_loss(*edits: str) -> None:
        some = {name: EDITS[name] for name in edits}
        whole, _ = loss_without(model, text.batches, groups, some, loss, save)
        record.setdefault("whole", {}).update(loss=whole.mean, tokens=int(whole.tokens.sum()))

    measure_loss("silent", "shuffled")
    # Those that matter most come first, so that a recording that is stopped has them.
    order = sorted(groups, key=lambda name: -loss[name]["silent"][0])
    score, _, signature = bleu_without(
        translator, few, {n: groups[n] for n in order}, record.setdefault("bleu", {}), save
    )
    record["whole"]["BLEU"], record["signature"] = score, signature
    measure_loss("even")
    save("all")


def roles_and_alignments(translator: Translator, text: StudyText) -> dict[str, Any]:
    """Score all heads, and those of untrained models, and read alignments from them."""
    links = text.links(translator)
    scores = role_scores(translator.model, text.batches, text.marks, links)
    untrained = untrained_scores(translator, text, links)
    references = dict(hand=hand_aligned(), aligner=[p for batch in text.pairs for p in batch])
    return dict(
        roles=plain_scores(scores),
        even={k: dict(zip(s.roles, s.even.tolist(), strict=True)) for k, s in scores.items()},
        queries={k: dict(zip(s.roles, s.queries.tolist(), strict=True)) for k, s in scores.items()},
        untrained=dict(seeds=list(UNTRAINED_SEEDS), roles=[plain_scores(s) for s in untrained]),
        alignment={
            name: {row: alignment_errors(translator, right, row) for row in ("writes", "has read")}
            for name, right in references.items()
        },
    )


def rounded(value: Any) -> Any:
    """Keep five decimals of every number."""
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return round(value, 5) if isinstance(value, float) else value


if __name__ == "__main__":
    main()
