"""Short training runs on real text take the trainer's steps and report them correctly."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from transformer.data.batching import TokenBatches
from transformer.model.config import TransformerConfig
from transformer.recipes.presets import Preset
from transformer.training.checkpoint import average_checkpoints, save_weights
from transformer.training.config import TrainingConfig
from transformer.training.loss import TranslationLoss, perplexity
from transformer.training.trainer import Trainer
from transformer_book.studies.training import (
    copy_weights,
    make_model,
    mean_weights,
    quality,
    short_text,
    shuffle_hidden_units,
    train,
)

TINY = Preset(
    "tiny",
    TransformerConfig(300, d_model=16, d_ff=16, num_heads=2, num_layers=1, dropout=0.1),
    TrainingConfig(max_steps=6, batch_tokens=300, warmup_steps=4),
    train_pairs=60,
)


@pytest.fixture(scope="module")
def text(corpus):
    return short_text(corpus, TINY, longest=7)


def test_more_pairs_are_added_to_fewer_and_the_vocabulary_stays(corpus, text):
    more = short_text(corpus, replace(TINY, train_pairs=90), longest=7)
    assert len(text.train) == 60 and len(more.train) == 90
    for row in range(60):
        assert text.train.source[row] == more.train.source[row]
        assert text.train.target[row] == more.train.target[row]
    decoded = {text.tokenizer.decode(text.train.source[row]) for row in range(60)}
    assert decoded <= set(corpus.train.source) and decoded != set(corpus.train.source[:60])


def test_the_text_has_short_pairs_and_held_out_ones_of_the_named_split(corpus, text):
    # English sentences have 7 words here, German ones 5.
    assert len(short_text(corpus, replace(TINY, train_pairs=None), longest=7).train) == 100
    assert list(text.text) == list(corpus.validation)
    assert len(text.held_out) == len(corpus.validation)
    test = short_text(corpus, replace(TINY, test_pairs=5), longest=7, split="test")
    assert list(test.text) == list(corpus.test)[:5] and len(test.held_out) == 5
    with pytest.raises(ValueError, match="train_pairs must be at most 0"):
        short_text(corpus, TINY, longest=6)


@pytest.mark.parametrize("changes", [{}, dict(accumulate=2), dict(clip_norm=0.5, beta2=0.9)])
def test_it_takes_the_steps_of_the_trainer(text, tmp_path, changes):
    preset = TINY.with_changes(dropout=0.0, seed=3, **changes)
    model, same = make_model(preset), make_model(preset)
    train(model, text.train, preset.training)
    Trainer(same, text.train, preset.training, tmp_path, progress=False).fit()
    for ours, theirs in zip(model.parameters(), same.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)


def test_what_a_training_reports(text):
    preset = TINY.with_changes(dropout=0.0)
    config = preset.training
    model = make_model(preset)
    found = train(model, text.train, config, keep={2, 6})

    # The first step by hand: mean loss over the real tokens, and its gradient.
    start = make_model(preset)
    batches = TokenBatches(text.train, config.batch_tokens, config.seed)
    batch = batches.batch(batches.epoch(0)[0])
    total, _ = TranslationLoss(start)(batch.source, batch.target_input, batch.labels)
    loss = total / batch.num_target_tokens
    loss.backward()
    squares = sum(p.grad.pow(2).sum() for p in start.parameters())
    assert found.losses[0] == pytest.approx(loss.item(), rel=1e-5)
    assert found.gradients[0] == pytest.approx(squares.sqrt().item(), rel=1e-4)

    # Adam's first step moves every weight that has a gradient by the learning rate.
    assert found.moves[0] == pytest.approx(1, abs=0.05)
    assert found.losses[-1] < found.losses[0] and not model.training
    two = make_model(preset)
    train(two, text.train, replace(config, max_steps=2))
    for step, weights in {2: copy_weights(two), 6: copy_weights(model)}.items():
        assert all(torch.equal(weights[n], found.snapshots[step][n]) for n in weights)


def test_the_mean_of_weights_equals_that_of_their_files(tmp_path):
    copies = [copy_weights(make_model(TINY.with_changes(seed=seed))) for seed in range(3)]
    for i, weights in enumerate(copies):
        save_weights(weights, tmp_path / f"{i}.safetensors")
    expected = average_checkpoints(sorted(tmp_path.glob("*.safetensors")))
    mean = mean_weights(copies)
    assert mean.keys() == expected.keys()
    for name, weight in mean.items():
        torch.testing.assert_close(weight, expected[name], rtol=0, atol=1e-7)


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
    weights = copy_weights(model)
    other = make_model(TINY.with_changes(seed=1))
    assert quality(other, text.held_out) != found == quality(other, text.held_out, weights)


def test_shuffled_hidden_units_compute_the_same(text):
    model = make_model(TINY.with_changes(num_layers=2)).eval()
    for layer in [*model.encoder, *model.decoder]:
        torch.nn.init.normal_(layer.feed_forward.hidden.bias)  # zero before training
    before = copy_weights(model)
    batch = TokenBatches(text.held_out, 4096).batch(np.arange(5))
    expected = model(batch.source, batch.target_input)
    shuffled = shuffle_hidden_units(model, seed=1)
    moved = {name for name in before if not torch.equal(before[name], shuffled[name])}
    assert len(moved) == 12 and all("feed_forward" in name for name in moved)

    model.load_state_dict(shuffled)
    same = model(batch.source, batch.target_input)
    torch.testing.assert_close(same, expected, rtol=0, atol=1e-5)
    model.load_state_dict(mean_weights([before, shuffled]))
    mixed = model(batch.source, batch.target_input)
    assert (mixed - expected).abs().max() > 1e-2
