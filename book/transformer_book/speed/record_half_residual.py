"""Record what residual connections in bfloat16 do to the loss of a small model.

    python -m transformer_book.speed.record_half_residual     three minutes; always on the CPU

Each seed trains in "bf16" twice, from the same weights on the same batches and without dropout:
once with the sums between the layers in float32, once in bfloat16.
"""

import os
import statistics
from itertools import islice
from tempfile import TemporaryDirectory
from typing import Any

import torch

from transformer.data.batching import EncodedPairs, TokenBatches, encode_pairs
from transformer.data.parallel import Split
from transformer.model.config import TransformerConfig
from transformer.recipes.architectures import build_model
from transformer.training.config import TrainingConfig
from transformer.training.loss import perplexity
from transformer.training.stream import step_batches
from transformer.training.trainer import Trainer
from transformer_book.speed.scale import HALF_RESIDUAL
from transformer_book.studies.recording import Recording, corpus_facts, parser, shipped

#: Fields of the recipe that differ, by the name of the run.
RUNS: dict[str, dict[str, Any]] = {
    "bf16": dict(precision="bf16"),
    "bf16 with half_residual": dict(precision="bf16", half_residual=True),
}
_LAST = 50  # steps whose mean loss is recorded


def main() -> None:
    """Make the record."""
    options = parser(__doc__, HALF_RESIDUAL)
    options.add_argument("--steps", type=int, default=300)
    options.add_argument("--seeds", type=int, default=3)
    chosen = options.parse_args()
    os.environ["ACCELERATE_USE_CPU"] = "true"  # accelerate looks for a GPU when a run begins
    torch.set_num_threads(1)
    translator, corpus, _ = shipped()
    pairs = encode_pairs(translator.tokenizer, corpus.train)
    validation = Split(corpus.validation.source[:400], corpus.validation.target[:400])
    held_out = TokenBatches(encode_pairs(translator.tokenizer, validation), 2048)
    model = TransformerConfig.tiny(translator.tokenizer.vocab_size, dropout=0.0)
    recipe = TrainingConfig(max_steps=chosen.steps, batch_tokens=256, warmup_steps=1000)
    recording = Recording(
        chosen.output,
        "transformer_book.speed.record_half_residual",
        keep=False,
        corpus=corpus_facts(corpus, "train"),
        model=model.to_dict(),
        recipe=recipe.to_dict(),
        last_steps=_LAST,
        seeds=[],
    )
    for seed in range(chosen.seeds):
        found = {}
        for name, changes in RUNS.items():
            config = TrainingConfig(**recipe.to_dict() | dict(seed=seed) | changes)
            found[name] = train(model, pairs, config, held_out)
            recording.say(f"seed {seed}, {name}: {found[name]}")
        recording.content["seeds"].append(found)
        recording.save(f"seed {seed}")


def train(
    model: TransformerConfig, pairs: EncodedPairs, config: TrainingConfig, held_out: TokenBatches
) -> dict[str, float]:
    """Train all steps; return the mean loss of the last ones and the held-out perplexity."""
    torch.manual_seed(config.seed)
    with TemporaryDirectory() as folder:
        trainer = Trainer(build_model(model), pairs, config, folder, progress=False)
        trainer.loss.train()
        losses = []
        for step in islice(step_batches(trainer.batches), config.max_steps):
            losses.append(trainer._train_step(step.batches, step.target_tokens).item())
            trainer.step += 1
        held_out_perplexity = perplexity(trainer.model, held_out, trainer.autocast())
    return dict(loss=statistics.mean(losses[-_LAST:]), perplexity=held_out_perplexity)


if __name__ == "__main__":
    main()
