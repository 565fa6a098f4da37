"""More questions to the heads, on sentences not trained on: links, senses, removal."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from transformer.data.corpora import Corpus
from transformer.inference.sentences import encode_sentences
from transformer.inference.significance import interval
from transformer.inference.translator import Translator
from transformer.model.transformer import Transformer
from transformer_book.studies.recording import Recording, shipped
from transformer_book.studies.what_heads_learn import looks, senses
from transformer_book.studies.what_heads_learn.ablation import Head, heads_of
from transformer_book.studies.what_heads_learn.explanation import (
    gradient_norms,
    mean_agreement,
    removal_effects,
)
from transformer_book.studies.what_heads_learn.study import UNTRAINED_SEEDS

RECORD = Path(__file__).parent / "questions.json"
SHUFFLES, SENTENCES = 1000, 60
PLACES = 400  # sentences with possessives
WORDS = 50  # occurrences of a word that is compared with pronouns
HELD_OUT = ("validation", "test", "challenge")


def heading() -> dict[str, Any]:
    """Return the model, the corpus and the number of shuffles in the record."""
    _, _, about = shipped()
    about["corpus"]["split"] = ", ".join(HELD_OUT)
    return about | dict(shuffles=SHUFFLES)


def fill(recording: Recording) -> None:
    """Ask the questions whose answers a record lacks."""
    (translator, corpus, _), record = shipped(), recording.content
    if "looks" not in record:
        record["looks"] = all_looks(translator, corpus)
        recording.save("looks")
    pairs = held_out(corpus)
    for word in senses.SENSES:
        if word not in record.setdefault("senses", {}):
            record["senses"][word] = one_word(translator, word, pairs)
            recording.save(word)
    if "explanation" not in record:
        test = list(corpus.test)
        record["explanation"] = explanation(translator, test[:: len(test) // SENTENCES])
        recording.save("explanation")


def held_out(corpus: Corpus) -> list[tuple[str, str]]:
    """Return the pairs that the model was not trained on."""
    return [pair for name in HELD_OUT for pair in corpus.splits[name]]


def untrained(translator: Translator, seed: int) -> Translator:
    """Return a translator of the same shape with random parameters."""
    assert isinstance(translator.model, Transformer)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Transformer(translator.model.config)
    return Translator(model, translator.tokenizer)


def all_looks(translator: Translator, corpus: Corpus) -> dict[str, Any]:
    """Ask the questions of Figures 3 to 5, also of untrained models."""
    sentences = list(dict.fromkeys(source for source, _ in held_out(corpus)))
    tokens = translator.tokenizer
    owned = [s for s in sentences if looks.from_possessive(tokens.tokens(tokens.encode(s)))]
    found = {}
    for name, ask in {
        "make to adjective": lambda t: looks.looks_between(t, sentences, looks.from_make),
        "possessive to next": lambda t: looks.looks_between(
            t, owned[:PLACES], looks.from_possessive
        ),
        "any to adjective": lambda t: looks.looks_between(
            t, sentences, looks.from_make, same="key"
        ),
        "he to Tom": lambda t: looks.looks_at_name(t, sentences),
    }.items():
        one = ask(translator)
        excess, draws, chance = one.excess(), one.excess_draws(), one.chance(SHUFFLES)
        found[name] = dict(
            sentences=len(set(one.sentence.tolist())),
            links=int(one.linked.sum()),
            weight=heads_dict(one.weights[one.linked].mean(axis=0)),
            excess=heads_dict(excess),
            interval={
                str(Head("encoder", *at)): interval(draws[:, at[0], at[1]])
                for at in np.ndindex(*excess.shape)
            },
            chance=np.quantile(chance, [0.5, 0.95]).tolist(),
            p=float((1 + (chance >= np.abs(excess).max()).sum()) / (1 + SHUFFLES)),
            untrained=[
                heads_dict(ask(untrained(translator, seed)).excess()) for seed in UNTRAINED_SEEDS
            ],
        )
    found["he to Tom"]["words"] = {
        word: float(replace(one, linked=one.word == word).excess().max())
        for word, count in zip(*np.unique(one.word, return_counts=True), strict=True)
        if count >= WORDS
    }
    return found


def heads_dict(values: np.ndarray) -> dict[str, float]:
    """Name the encoder's heads in an array (layers, H)."""
    return {str(Head("encoder", *at)): float(values[at]) for at in np.ndindex(*values.shape)}


def one_word(translator: Translator, word: str, pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Ask which heads tell the two senses of a word apart, and which of them are needed."""
    found = senses.examples(word, pairs)
    labels = np.array([e.sense == 1 for e in found], bool)
    counts = [int((~labels).sum()), int(labels.sum())]
    if min(counts) < senses.LEAST:
        return dict(sentences=counts)
    mixed = senses.shuffles(labels, SHUFFLES)
    written, attention = senses.at_the_word(translator, word, found)
    result: dict[str, Any] = dict(sentences=counts, senses=list(senses.SENSES[word]))
    for name, features in (("output", written), ("attention", attention)):
        rates, luck = (senses.told_apart(features, each) for each in (labels, mixed))
        best = luck.max(axis=1)  # of all heads, as we pick the best one too
        p = [float((1 + (best >= rate).sum()) / (1 + SHUFFLES)) for rate in rates]
        result[name] = dict(
            rates=rates.tolist(), chance=np.quantile(best, [0.5, 0.95]).tolist(), p=p
        )
    result["untrained"] = [
        float(senses.told_apart(made[0], labels).max())
        for made in (
            senses.at_the_word(untrained(translator, seed), word, found) for seed in UNTRAINED_SEEDS
        )
    ]
    assert isinstance(translator.model, Transformer)
    losses = senses.word_losses(translator, found)
    added = losses[:, 1:] - losses[:, :1]
    t, luck = (senses.selective(added, each) for each in (labels, mixed))
    best = np.abs(luck).max(axis=1)
    p = [float((1 + (best >= size).sum()) / (1 + SHUFFLES)) for size in np.abs(t)]
    result["silenced"] = dict(
        heads=[str(head) for head in heads_of(translator.model.config)],
        loss=[float(losses[labels == side, 0].mean()) for side in (False, True)],
        added=[added[labels == side].mean(axis=0).tolist() for side in (False, True)],
        t=t.tolist(),
        p=p,
    )
    return result


def explanation(translator: Translator, pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Correlate weights and rivals with the effect of removing each source token."""
    model, tokenizer = translator.model, translator.tokenizer
    assert isinstance(model, Transformer)
    layers, heads = len(model.decoder), model.config.num_heads
    views: dict[str, list[np.ndarray]] = {}
    effects: dict[str, list[np.ndarray]] = {"token": [], "vector": []}
    predictions = 0
    for english, german in pairs:
        ids, out = (
            [*row, model.config.eos_id]
            for row in encode_sentences([english, german], ["english", "german"], tokenizer)
        )
        source, target = torch.tensor([ids]), torch.tensor([[model.config.bos_id, *out[:-1]]])
        effects["token"].append(removal_effects(model, source, target, "token").numpy())
        effects["vector"].append(removal_effects(model, source, target, "vector").numpy())
        with torch.inference_mode():
            maps = torch.cat(model.attention_weights(source, target).cross).numpy()
        T, S = maps.shape[-2:]
        predictions += T
        off = np.subtract.outer(np.arange(T) / T, np.arange(S) / S)
        gradient = gradient_norms(model, source, target, torch.tensor([out])).numpy()
        now = {f"layer {i + 1}": maps[i].mean(axis=0) for i in range(layers)}
        now |= {"all heads": maps.mean(axis=(0, 1)), "gradient": gradient, "place": -np.abs(off)}
        now |= {str(Head("cross", i, j)): maps[i, j] for i in range(layers) for j in range(heads)}
        for name, view in now.items():
            views.setdefault(name, []).append(view)
    return dict(
        sentences=len(pairs),
        predictions=predictions,
        agreement={
            name: {what: mean_agreement(view, effect).tolist() for what, effect in effects.items()}
            for name, view in views.items()
        },
    )
