"""Roles, ablation losses, BLEU and alignments of each head of the shipped model."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch

from transformer.data.batching import Batch, TokenBatches, encode_pairs
from transformer.data.corpora import Corpus
from transformer.data.parallel import Split
from transformer.data.progress import progress
from transformer.data.splits import components
from transformer.inference.metrics import Score, bleu
from transformer.inference.significance import bootstrap, interval, sentence_counts
from transformer.inference.translator import Translator
from transformer.model.transformer import Transformer
from transformer.recipes.record import read_record
from transformer_book.studies.recording import Recording, shipped
from transformer_book.studies.what_heads_learn.ablation import (
    KINDS,
    Edit,
    Head,
    Kind,
    PairLosses,
    edited,
    encode_all,
    even,
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
from transformer_book.studies.what_heads_learn.roles import Links, RoleScores, mark_ids, role_scores
from transformer_book.studies.what_heads_learn.word_alignment import (
    AlignedPair,
    WordAligner,
    aligned_both_ways,
    alignment_error_rate,
    hand_aligned,
)

# For each group of heads and each edit: a change, and the ends of its interval.
Measured = dict[str, dict[str, list[float]]]

#: The recorded study of the shipped weights.
RECORD = Path(__file__).parent / "record.json"

#: Edits of a head's weights, by name.
EDITS: dict[str, Edit] = {"silent": silent, "shuffled": shuffled, "even": even}
UNTRAINED_SEEDS = (1, 2, 3)
BATCH_TOKENS = 1024


@dataclass(frozen=True)
class StudyText:
    """Pairs of a test split in batches, with their word alignments."""

    batches: list[Batch]
    groups: list[int]  #: of the pairs that share a sentence, in the order of the batches.
    pairs: list[list[AlignedPair]]
    marks: list[int]
    aligners: tuple[WordAligner, WordAligner]

    def links(self, translator: Translator) -> list[Links]:
        """Return the sure links between tokens, batch by batch."""
        return [[token_links(translator, pair) for pair in batch] for batch in self.pairs]


def study_text(
    translator: Translator, corpus: Corpus, pairs: int = 1000, aligner_pairs: int = 30_000
) -> StudyText:
    """Take the first pairs of a test split, and align them."""
    test = Split(corpus.test.source[:pairs], corpus.test.target[:pairs])
    more = [side[:aligner_pairs] for side in (corpus.train.source, corpus.train.target)]
    text = Split(corpus.test.source + more[0], corpus.test.target + more[1])
    aligners = WordAligner(text), WordAligner(text.swapped())
    planned = TokenBatches(encode_pairs(translator.tokenizer, test), BATCH_TOKENS)
    rows = planned.epoch(0)
    aligned = aligned_both_ways(test, *aligners)
    groups = components(test.source, test.target)
    return StudyText(
        [planned.batch(row) for row in rows],
        [groups[i] for row in rows for i in row],
        [[aligned[i] for i in row] for row in rows],
        mark_ids(translator.tokenizer),
        aligners,
    )


def untrained_scores(
    translator: Translator, text: StudyText, links: Sequence[Links] | None = None
) -> list[dict[Kind, RoleScores]]:
    """Score untrained models of the same configuration, one per seed."""
    found = []
    for seed in UNTRAINED_SEEDS:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = Transformer(translator.model.config)
        found.append(role_scores(model, text.batches, text.marks, links))
    return found


def loss_without(
    model: Transformer,
    text: StudyText,
    groups: Mapping[str, Sequence[Head]],
    edits: Mapping[str, Edit] = EDITS,
    found: Measured | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> tuple[PairLosses, Measured]:
    """Edit heads, a group at a time: the loss before, the nats added, and their 95% intervals."""
    batches = text.batches
    whole, memories = pair_losses(model, batches), encode_all(model, batches)
    found = {} if found is None else found
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
    return whole, found


def head_groups(model: Transformer) -> dict[str, list[Head]]:
    """Return groups of heads such as "cross 3.1" and "cross layer 3" by name."""
    heads = heads_of(model.config)
    groups = {str(head): [head] for head in heads}
    for head in heads:
        groups.setdefault(f"{head.kind} layer {head.layer + 1}", []).append(head)
    return groups


def mixed_groups(model: Transformer, draws: int = 10, seed: int = 0) -> dict[str, list[Head]]:
    """Draw groups as large as a layer, evenly from all layers of one kind, by name."""
    random, groups = Random(seed), {}
    for kind in KINDS:
        heads = [head for head in heads_of(model.config) if head.kind == kind]
        layers = {head.layer for head in heads}
        spread = []
        for group in combinations(heads, model.config.num_heads):
            counts = [sum(head.layer == layer for head in group) for layer in layers]
            if len(layers) > 1 and max(counts) - min(counts) <= 1:
                spread.append(list(group))
        for number, drawn in enumerate(random.sample(spread, min(draws, len(spread))), 1):
            groups[f"{kind} mixed {number}"] = drawn
    return groups


def bleu_without(
    translator: Translator,
    split: Split,
    groups: Mapping[str, Sequence[Head]],
    texts: dict[str, list[str]],
    found: dict[str, list[float]] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> tuple[float, dict[str, list[float]], str]:
    """Silence heads, a group at a time: BLEU before, losses with 95% intervals, signature."""
    assert isinstance(translator.model, Transformer)
    pairs, found = components(split.source, split.target), {} if found is None else found

    def translate(name: str) -> tuple[np.ndarray, Score]:
        texts[name] = translator.translate(split.source, beam_size=1, batch_size=128)
        counts = sentence_counts(texts[name], split.target)
        return bootstrap(counts, groups=pairs), bleu(texts[name], split.target)

    draws, score = translate("whole")
    for name, heads in groups.items():
        if name in found:
            continue
        with edited(translator.model, dict.fromkeys(heads, silent)):
            changed, now = translate(name)
        found[name] = [score.score - now.score, *interval(draws - changed)]
        say(f"{name}, BLEU")
    return score.score, found, score.signature


def alignment_errors(
    translator: Translator, right: Sequence[AlignedPair], row: Row
) -> dict[str, float]:
    """Return the alignment error rate of cross-attention as a word alignment."""
    weights = [cross_word_weights(translator, pair, row) for pair in right]
    layers, heads = weights[0].shape[:2]

    def rate(chosen: Iterable[np.ndarray]) -> float:
        return alignment_error_rate([strongest_links(each) for each in chosen], right)

    found = {
        str(Head("cross", layer, index)): rate(w[layer, index] for w in weights)
        for layer in range(layers)
        for index in range(heads)
    }
    for layer in range(layers):
        found[f"cross layer {layer + 1}"] = rate(w[layer].mean(axis=0) for w in weights)
    return found | {"all": rate(w.mean(axis=(0, 1)) for w in weights)}


def recorded_study(path: Path | str = RECORD) -> dict[str, Any]:
    """Read the record: "loss", "bleu", "roles", "even", "untrained", "alignment", their origin."""
    return read_record(path)


def plain_scores(scores: Mapping[Kind, RoleScores]) -> dict[str, dict[str, float]]:
    """Return the weight of each head on each role as plain numbers."""
    return {
        str(Head(kind, layer, index)): {
            role: float(scores[kind].of(role)[layer, index]) for role in scores[kind].roles
        }
        for kind in KINDS
        for layer, index in np.ndindex(scores[kind].weight.shape[1:])
    }


PAIRS, BLEU_PAIRS, ALIGNER_PAIRS = 1000, 400, 30_000


def heading() -> dict[str, Any]:
    """Return the model and the corpus in the record."""
    return shipped()[-1]


def fill(recording: Recording) -> None:
    """Add what a record and its translations do not hold yet."""
    record, texts, save = recording.content, recording.texts, recording.save
    translator, corpus, _ = shipped()
    model, known = translator.model, "roles" in record
    assert isinstance(model, Transformer)
    text = study_text(translator, corpus, PAIRS, 1 if known else ALIGNER_PAIRS)
    if not known:
        record |= roles_and_alignments(translator, text)
        save("roles and alignments")
    groups, loss = head_groups(model), record.setdefault("loss", {})
    few = Split(corpus.test.source[:BLEU_PAIRS], corpus.test.target[:BLEU_PAIRS])
    record |= dict(pairs=PAIRS, bleu_pairs=BLEU_PAIRS)

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
