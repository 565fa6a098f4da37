"""Measure every head of the shipped model and write the record of chapter 21.

    python -m transformer_book.studies.what_heads_learn.record     about four minutes on one core

What the record holds is kept: a stopped recording continues. The record belongs to the weights that
ship with the package: delete it and record again when they are replaced.
"""

from collections.abc import Callable
from typing import Any

import torch

from transformer.data.corpora import Corpus
from transformer.data.parallel import Split
from transformer.inference.translator import Translator
from transformer.model.transformer import Transformer
from transformer_book.studies.recording import Recording, parser, shipped
from transformer_book.studies.what_heads_learn.roles import role_scores
from transformer_book.studies.what_heads_learn.study import (
    EDITS,
    RECORD,
    UNTRAINED_SEEDS,
    StudyText,
    alignment_errors,
    bleu_without,
    head_groups,
    loss_without,
    mixed_groups,
    plain_scores,
    study_text,
    untrained_scores,
)
from transformer_book.studies.what_heads_learn.word_alignment import hand_aligned

PAIRS = 1000
BLEU_PAIRS = 400


def main() -> None:
    """Record what is missing."""
    output = parser(__doc__, RECORD).parse_args().output
    torch.set_num_threads(1)
    translator, corpus, heading = shipped()
    recording = Recording(
        output, "transformer_book.studies.what_heads_learn.record", digits=5, **heading
    )
    study(translator, corpus, recording.content, recording.texts, save=recording.save)


def study(
    translator: Translator,
    corpus: Corpus,
    record: dict[str, Any],
    texts: dict[str, list[str]],
    pairs: int = PAIRS,
    bleu_pairs: int = BLEU_PAIRS,
    aligner_pairs: int = 30_000,
    save: Callable[[str], None] = lambda line: None,
) -> None:
    """Add to a record, and to its translations, what it does not hold yet."""
    model, known = translator.model, "roles" in record
    assert isinstance(model, Transformer)
    text = study_text(translator, corpus, pairs, 1 if known else aligner_pairs)
    if not known:
        record |= roles_and_alignments(translator, text)
        save("roles and alignments")
    groups, loss = head_groups(model), record.setdefault("loss", {})
    few = Split(corpus.test.source[:bleu_pairs], corpus.test.target[:bleu_pairs])
    record |= dict(pairs=pairs, bleu_pairs=bleu_pairs)

    def measure_loss(*edits: str) -> None:
        some = {name: EDITS[name] for name in edits}
        whole, _ = loss_without(model, text, groups, some, loss, save)
        record.setdefault("whole", {}).update(loss=whole.mean, tokens=int(whole.tokens.sum()))

    measure_loss("silent", "shuffled")
    mixed = record.setdefault("mixed", {})
    loss_without(model, text, mixed_groups(model), dict(silent=EDITS["silent"]), mixed, save)
    # The most important heads come first, so that a stopped recording has them.
    order = sorted(groups, key=lambda name: -loss[name]["silent"][0])
    ordered, lost = {name: groups[name] for name in order}, record.setdefault("bleu", {})
    score, _, signature = bleu_without(translator, few, ordered, texts, lost, save)
    record["whole"]["BLEU"], record["signature"] = score, signature
    measure_loss("even")
    save("all")


def roles_and_alignments(translator: Translator, text: StudyText) -> dict[str, Any]:
    """Score the heads of this and of untrained models, and read alignments from them."""
    links, model = text.links(translator), translator.model
    assert isinstance(model, Transformer)
    scores = role_scores(model, text.batches, text.marks, links)
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


if __name__ == "__main__":
    main()
