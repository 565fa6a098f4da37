"""Where the heads of a shipped model look, and what is lost when they are removed or shuffled."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from transformer.data.batching import Batch, TokenBatches, encode_pairs
from transformer.data.corpora import Corpus, load_corpus
from transformer.data.parallel import Split
from transformer.data.progress import progress
from transformer.data.splits import components
from transformer.inference.significance import interval
from transformer.inference.translator import Translator
from transformer.model.transformer import Transformer
from transformer.saving.locate import locate
from transformer_book.studies.recording import SHIPPED, Recording, corpus_facts
from transformer_book.studies.what_heads_learn.ablation import (
    Edit,
    Head,
    encode_all,
    heads_of,
    pair_losses,
    shuffled,
    silent,
)
from transformer_book.studies.what_heads_learn.attention_alignment import (
    Row,
    cross_word_weights,
    strongest_links,
    token_links,
)
from transformer_book.studies.what_heads_learn.explanation import explanation
from transformer_book.studies.what_heads_learn.looks import SEEDS, all_looks, untrained
from transformer_book.studies.what_heads_learn.roles import mark_ids, role_scores
from transformer_book.studies.what_heads_learn.word_alignment import (
    AlignedPair,
    WordAligner,
    aligned_both_ways,
    alignment_error_rate,
)

#: The recorded studies of the two shipped models.
RECORD = Path(__file__).parent / "record.json"
FRENCH = Path(__file__).parent / "french.json"

EDITS: dict[str, Edit] = {"silent": silent, "shuffled": shuffled}
PAIRS, ALIGNER_PAIRS, SENTENCES = 1000, 30_000, 60
BATCH_TOKENS = 1024


class StudyText(NamedTuple):
    """Pairs of a test split in batches, with their word alignments."""

    batches: list[Batch]
    groups: list[int]  #: of the pairs that share a sentence, in the order of the batches.
    pairs: list[list[AlignedPair]]


def study_text(translator: Translator, corpus: Corpus) -> StudyText:
    """Take the first pairs of a test split, and align them."""
    test = Split(corpus.test.source[:PAIRS], corpus.test.target[:PAIRS])
    more = [side[:ALIGNER_PAIRS] for side in (corpus.train.source, corpus.train.target)]
    text = Split(corpus.test.source + more[0], corpus.test.target + more[1])
    aligned = aligned_both_ways(test, WordAligner(text), WordAligner(text.swapped()))
    planned = TokenBatches(encode_pairs(translator.tokenizer, test), BATCH_TOKENS)
    rows = planned.epoch(0)
    groups = components(test.source, test.target)
    return StudyText(
        [planned.batch(row) for row in rows],
        [groups[i] for row in rows for i in row],
        [[aligned[i] for i in row] for row in rows],
    )


def head_groups(model: Transformer) -> dict[str, list[Head]]:
    """Return groups of heads such as "cross 3.1" and "cross layer 3" by name."""
    heads = heads_of(model.config)
    groups = {str(head): [head] for head in heads}
    for head in heads:
        groups.setdefault(f"{head.kind} layer {head.layer + 1}", []).append(head)
    return groups


def loss_without(
    model: Transformer,
    text: StudyText,
    groups: Mapping[str, Sequence[Head]],
    found: dict[str, dict[str, list[float]]],
    say: Callable[[str], None] = lambda line: None,
    edits: Mapping[str, Edit] = EDITS,
) -> float:
    """Edit heads, a group at a time: the nats that this adds, with intervals; the loss before."""
    batches = text.batches
    whole, memories = pair_losses(model, batches), encode_all(model, batches)
    for edit_name, edit in edits.items():
        for name, heads in progress(groups.items()):
            if edit_name in found.setdefault(name, {}):
                continue
            known = None if any(head.kind == "encoder" for head in heads) else memories
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)  # of the shuffles
                changed = pair_losses(model, batches, dict.fromkeys(heads, edit), known)
            more, draws = changed.more_than(whole, text.groups)
            found[name][edit_name] = [more, *interval(draws)]
            say(f"{name}, {edit_name}")
    return whole.mean


def alignment_errors(
    translator: Translator, right: Sequence[AlignedPair], row: Row
) -> dict[str, float]:
    """Return the error rate of each cross-attention head as a word alignment."""
    weights = [cross_word_weights(translator, pair, row) for pair in right]
    return {
        str(Head("cross", *at)): alignment_error_rate(
            [strongest_links(w[at]) for w in weights], right
        )
        for at in np.ndindex(*weights[0].shape[:2])
    }


def roles_and_alignments(translator: Translator, text: StudyText) -> dict[str, Any]:
    """Score the heads of this and of untrained models, and read alignments from them."""
    model = translator.model
    assert isinstance(model, Transformer)
    links = [[token_links(translator, pair) for pair in batch] for batch in text.pairs]
    marks, right = mark_ids(translator.tokenizer), [pair for batch in text.pairs for pair in batch]
    shares, even = role_scores(model, text.batches, marks, links)
    random: list[Any] = [untrained(translator, seed).model for seed in SEEDS]
    return dict(
        roles=shares,
        even=even,
        untrained=[role_scores(each, text.batches, marks, links)[0] for each in random],
        alignment={
            "writes": alignment_errors(translator, right, "writes"),
            "has read": alignment_errors(translator, right, "has read"),
        },
    )


def heading(name: str = SHIPPED) -> dict[str, Any]:
    """Return a model and its corpus in the record."""
    weights = (locate(name).folder / "model.safetensors").read_bytes()
    model = dict(name=name, sha256=hashlib.sha256(weights).hexdigest())
    return dict(model=model, corpus=corpus_facts(load_corpus(name), "test"))


def fill(recording: Recording) -> None:
    """Add what a record does not hold yet."""
    record, save, name = recording.content, recording.save, recording.heading["model"]["name"]
    translator, corpus = Translator.from_pretrained(name), load_corpus(name)
    model, test = translator.model, list(corpus.test)
    assert isinstance(model, Transformer)
    text = study_text(translator, corpus)
    if "roles" not in record:
        record |= roles_and_alignments(translator, text)
        save("roles and alignments")
    if "explanation" not in record:
        record["explanation"] = explanation(translator, test[:: len(test) // SENTENCES])
        save("explanation")
    if "looks" not in record:
        unseen = [corpus.splits[part].source for part in ("validation", "test", "challenge")]
        record["looks"] = all_looks(translator, [*dict.fromkeys(sum(unseen, []))])
        save("looks")
    loss = record.setdefault("loss", {})
    record["whole"] = loss_without(model, text, head_groups(model), loss, save)
    encoder = [head for head in heads_of(model.config) if head.kind == "encoder"]
    encoder.sort(key=lambda head: loss[str(head)]["silent"][0])
    fewer = {f"{number} of the encoder": encoder[:number] for number in (3, 6, 9)}
    loss_without(model, text, fewer, loss, save, dict(silent=silent))
