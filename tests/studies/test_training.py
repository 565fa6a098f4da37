"""Short training runs on real text take the trainer's steps, and quality is as by hand."""

import numpy as np
import pytest
import torch

from transformer.data.batching import TokenBatches
from transformer.model.config import TransformerConfig
from transformer.recipes.presets import Preset
from transformer.training.config import TrainingConfig
from transformer.training.loss import perplexity
from transformer.training.trainer import Trainer
from transformer_book.studies.training import make_model, quality, short_text, train

TINY = Preset(
    "tiny",
    TransformerConfig(300, d_model=16, d_ff=16, num_heads=2, num_layers=1, dropout=0.1),
    TrainingConfig(max_steps=6, batch_tokens=300, warmup_steps=4),
    train_pairs=60,
)


@pytest.fixture(scope="module")
def text(corpus):
    return short_text(corpus, TINY, longest=7)


@pytest.mark.parametrize("changes", [{}, dict(accumulate=2), dict(clip_norm=0.5, beta2=0.9)])
def test_it_takes_the_steps_of_the_trainer(text, tmp_path, changes):
    preset = TINY.with_changes(dropout=0.0, seed=3, **changes)
    model, same = make_model(preset), make_model(preset)
    train(model, text.train, preset.training)
    Trainer(same, text.train, preset.training, tmp_path, progress=False).fit()
    for ours, theirs in zip(model.parameters(), same.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)


def test_quality_by_hand(text):
    model = make_model(TINY).train()
    found = quality(model, text.held_out)
    assert model.training
    batches = TokenBatches(text.held_out, 4096)
    assert found.perplexity == pytest.approx(perplexity(model, batches), rel=1e-5)
    right, sure, tokens = 0, 0.0, 0
    model.eval()
    for row in range(len(text.held_out)):
        batch = batches.batch(np.array([row]))
        with torch.no_grad():
            p = model(batch.source, batch.target_input)[0].softmax(dim=-1)
        right += (p.argmax(dim=-1) == batch.labels[0]).sum().item()
        sure += p.max(dim=-1).values.sum().item()
        tokens += len(p)
    assert found.accuracy == pytest.approx(right / tokens)
    assert found.confidence == pytest.approx(sure / tokens, rel=1e-5)
