"""Train Hugging Face's MarianMTModel beside ours, and compare the losses and the translations.

    python -m transformer_book.studies.translation.peer          about forty minutes on one core

It needs the extra [bench]. Ctrl-C stops it, and the same command continues.

Both models start from the same weights and take the same steps: the same batches, learning rates,
Adam and label smoothing. Ours is trained by a Trainer, theirs by a plain loop. Without dropout the
losses of every step must agree. With dropout the random numbers differ, so two seeds are trained
and the translations of the test split are compared.
"""

import tempfile
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from transformer.data.corpora import load_corpus
from transformer.data.parallel import Split
from transformer.data.splits import components
from transformer.inference.metrics import bleu, chrf
from transformer.inference.significance import (
    bootstrap,
    character_counts,
    interval,
    sentence_counts,
)
from transformer.interop import to_marian
from transformer.interop.marian import WEIGHTS
from transformer.interop.marian_weights import SOURCE
from transformer.recipes.presets import Preset, get_preset
from transformer.recipes.translation import TranslationRun
from transformer.training.curve import read_curve
from transformer.training.schedule import learning_rate
from transformer.training.stream import step_batches
from transformer_book.speed.peers import HuggingFaceMarian
from transformer_book.studies.recording import Recording, parser
from transformer_book.studies.training_loop import optimise
from transformer_book.studies.translation.counts import SCORES

#: The shipped model's recipe with a shorter warm-up, and Marian's epsilon of the layer norms.
PRESET = get_preset("tatoeba-small").with_changes(
    max_steps=600, warmup_steps=300, learning_rate_factor=0.35, layer_norm_eps=1e-5,
    log_every=1, validate_every=600, save_every=600, score_pairs=0,
)  # fmt: skip
#: Steps of the comparison without dropout.
EXACT_STEPS = 100
SEEDS = (1, 2)
OURS, MARIAN = "ours", "MarianMTModel"

RECORD = Path(__file__).parent / "peer.json"


@torch.no_grad()
def marian_of(run: TranslationRun) -> HuggingFaceMarian:
    """Return a MarianMTModel that has the weights of a run's model."""
    config = run.model.config
    with tempfile.TemporaryDirectory() as folder:
        to_marian(run.translator, folder)
        exported = load_file(Path(folder) / WEIGHTS)
    peer = HuggingFaceMarian(config)  # one matrix for source, target and output, as ours
    layers = {name: tensor for name, tensor in exported.items() if ".layers." in name}
    peer.model.load_state_dict(layers, strict=False)
    peer.model.model.shared.weight.copy_(exported[SOURCE][: config.vocab_size])
    return peer


def train_marian(peer: HuggingFaceMarian, run: TranslationRun) -> list[float]:
    """Take the steps of a run with a MarianMTModel; return the mean loss of each."""
    training, d_model = run.preset.training, run.model.config.d_model
    schedule = d_model, training.warmup_steps, training.learning_rate_factor
    stream = step_batches(run.batches)
    return optimise(
        peer.model,
        lambda step: peer.loss(*next(stream).batches),
        training.max_steps,
        lambda step: learning_rate(step, *schedule),
        training.adam_eps,
    )


@torch.no_grad()
def translate_by_marian(model: Any, run: TranslationRun, texts: list[str]) -> list[str]:
    """Translate by the greedy search of Hugging Face, up to 50 tokens longer than the source."""
    tokenizer, size = run.tokenizer, 64
    ids = [torch.tensor([*tokenizer.encode(text), tokenizer.eos_id]) for text in texts]
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    found: dict[int, str] = {}
    for places in (order[i : i + size] for i in range(0, len(order), size)):
        source = torch.nn.utils.rnn.pad_sequence(
            [ids[i] for i in places], batch_first=True, padding_value=tokenizer.pad_id
        )
        output = model.generate(
            input_ids=source,
            attention_mask=source != tokenizer.pad_id,
            max_new_tokens=source.size(1) + 50,
            num_beams=1,
        )
        special = {tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id}
        rows = [[token for token in row if token not in special] for row in output.tolist()]
        found |= zip(places, tokenizer.decode_batch(rows), strict=True)
    return [found[i] for i in range(len(texts))]


def train(kind: str, preset: Preset) -> tuple[list[float], list[str]]:
    """Train a model of one kind; return the loss of each step and the test translations."""
    with tempfile.TemporaryDirectory() as folder:
        run = TranslationRun(preset, folder, progress=False)
        texts = run.tests["test"].source
        if kind == MARIAN:
            peer = marian_of(run)
            return train_marian(peer, run), translate_by_marian(peer.model, run, texts)
        run.train()
        losses = [line["loss"] for line in read_curve(run.folder / "curve.jsonl") if "loss" in line]
        return losses, run.translator.translate(texts, beam_size=1, sentence_case=False)


def compare(found: dict[str, list[str]], test: Split, metric: str = "BLEU") -> dict[str, float]:
    """Return the mean over the seeds of our score minus theirs, with its 95% interval.

    The two training runs of a seed are a pair. The test sentences are drawn in groups that
    share one.

    Args:
        found: translations by the name of a run.
        test: the pairs that were translated.
        metric: "BLEU" or "chrF2".
    """
    count = sentence_counts if metric == "BLEU" else character_counts
    groups = components(test.source, test.target)
    drawn = {
        name: bootstrap(count(texts, test.target), groups=groups, score=SCORES[metric])
        for name, texts in found.items()
    }
    gaps = [drawn[f"{OURS}, seed {seed}"] - drawn[f"{MARIAN}, seed {seed}"] for seed in SEEDS]
    draws = sum(gaps) / len(gaps)
    low, high = interval(draws)
    return dict(mean=float(draws.mean()), low=low, high=high)


def main() -> None:
    """Record the training runs that are missing, then the comparison."""
    chosen = parser(__doc__, RECORD).parse_args()
    torch.set_num_threads(1)
    recording = Recording(
        chosen.output,
        "transformer_book.studies.translation.peer",
        digits=6,
        preset=PRESET.to_dict(),
    )
    found = recording.texts
    exact, runs = (recording.content.setdefault(name, {}) for name in ("exact", "runs"))
    without = PRESET.with_changes(dropout=0.0, max_steps=EXACT_STEPS)
    for kind in (OURS, MARIAN):
        if kind not in exact:
            exact[kind], _ = train(kind, without)
            recording.save(f"{kind} without dropout: {exact[kind][-1]:.4f}")
    test = load_corpus(PRESET.corpus).test
    for seed in SEEDS:
        for kind in (OURS, MARIAN):
            name = f"{kind}, seed {seed}"
            if name in runs:
                continue
            losses, found[name] = train(kind, PRESET.with_changes(seed=seed))
            runs[name] = dict(
                losses=losses,
                bleu=bleu(found[name], test.target).score,
                chrf=chrf(found[name], test.target).score,
            )
            recording.save(f"{name}: BLEU {runs[name]['bleu']:.2f}")
    recording.content["difference"] = compare(found, test)
    recording.save("compared")


if __name__ == "__main__":
    main()
