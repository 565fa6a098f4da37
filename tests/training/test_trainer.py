"""The training loop: the result of a step, and what must not change it."""

import json
import math

import pytest
import torch
import torch.nn.functional as F
from tiny_training import (
    assert_close,
    assert_equal,
    at_step,
    gradients_of,
    make_model,
    make_pairs,
    make_trainer,
    weights_of,
)

from transformer import fast
from transformer.training.curve import read_curve
from transformer.training.trainer import Trainer

# Adam divides by the size of the gradient, so a gradient that is zero except for rounding would
# move a weight by a whole step in a random direction. A large epsilon prevents this.
SMOOTH = dict(adam_eps=1e-3)


def fit_and_record(trainer: Trainer, steps: list[int] | None = None) -> list[dict]:
    """Train to the end; return the gradients of each step."""
    gradients = []
    for step in steps or range(1, trainer.config.max_steps + 1):
        at_step(trainer, step, lambda: gradients.append(gradients_of(trainer.model)))
    assert trainer.fit() is True
    return gradients


def fail_once():
    """Return a function that raises KeyError on its first call."""
    errors = [KeyError("mine")]

    def fail():
        if errors:
            raise errors.pop()

    return fail


def test_accumulation_equals_the_big_batch(tmp_path):
    model = dict(dropout=0.0)
    big = make_trainer(
        tmp_path / "big", make_model(**model), batch_tokens=10_000, max_steps=3, **SMOOTH
    )
    assert len(big.batches) == 1
    small = make_trainer(tmp_path / "small", make_model(**model), max_steps=3, **SMOOTH)
    parts = len(small.batches)
    assert parts > 5
    tokens = {small.batches.batch(rows).num_target_tokens for rows in small.batches.epoch(0)}
    assert len(tokens) > 1, "batches of one size would hide a mean over batches"
    small = make_trainer(
        tmp_path / "small", make_model(**model), max_steps=3, accumulate=parts, **SMOOTH
    )
    before = weights_of(small.model)
    for a, b in zip(fit_and_record(big), fit_and_record(small), strict=True):
        assert max(g.abs().max() for g in a.values()) > 1e-2
        assert_close(a, b, rtol=1e-4, atol=1e-6)
    assert_close(weights_of(big.model), weights_of(small.model), rtol=1e-4, atol=1e-6)
    assert not torch.equal(before["embedding.weight"], small.model.embedding.weight)
    assert [line["step"] for line in read_curve(tmp_path / "small/curve.jsonl")] == [1, 2, 3]


@pytest.mark.parametrize("accumulate", [1, 3])
def test_the_logged_loss_is_the_mean_over_real_tokens(tmp_path, accumulate):
    model = make_model(dropout=0.0)
    trainer = make_trainer(tmp_path, model, max_steps=1, accumulate=accumulate)
    total = tokens = 0
    for rows in trainer.batches.epoch(0)[:accumulate]:
        batch = trainer.batches.batch(rows)
        logits = model(batch.source, batch.target_input).flatten(0, 1)
        total += F.cross_entropy(
            logits, batch.labels.flatten(), ignore_index=0, label_smoothing=0.1, reduction="sum"
        ).item()
        tokens += (batch.labels != 0).sum().item()
    trainer.fit()
    (line,) = read_curve(tmp_path / "curve.jsonl")
    assert line["loss"] == pytest.approx(total / tokens, rel=1e-5)
    assert trainer.tokens == tokens


def test_the_weights_are_those_of_a_loop_written_by_hand(tmp_path):
    trainer = make_trainer(tmp_path, make_model(dropout=0.0), max_steps=4, **SMOOTH)
    trainer.fit()
    model = make_model(dropout=0.0)
    adam = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-3)
    for step, rows in enumerate(trainer.batches.epoch(0)[:4], 1):
        batch = trainer.batches.batch(rows)
        logits = model(batch.source, batch.target_input).flatten(0, 1)
        adam.zero_grad()
        F.cross_entropy(
            logits, batch.labels.flatten(), ignore_index=0, label_smoothing=0.1
        ).backward()
        adam.param_groups[0]["lr"] = 16**-0.5 * min(step**-0.5, step * 8**-1.5)
        adam.step()
    assert_close(weights_of(trainer.model), weights_of(model), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("log_every", [1, 50])
def test_a_step_that_fails_is_taken_again_with_its_batch(tmp_path, log_every):
    changes = dict(max_steps=4, save_every=100, log_every=log_every)
    straight, failing = (
        make_trainer(tmp_path / name, make_model(dropout=0.0), **changes)
        for name in ("straight", "failing")
    )
    straight.fit()
    at_step(failing, 3, fail_once())
    with pytest.raises(KeyError, match="mine"):
        failing.fit()
    assert failing.fit() and failing.tokens == straight.tokens
    assert_equal(weights_of(straight.model), weights_of(failing.model))


@pytest.mark.parametrize("wanted", [False, True])
def test_the_recipe_and_no_translator_chooses_the_classes(tmp_path, wanted):
    """A Translator of the same model makes it fast: before the run, in it, at a validation."""
    fast.enable(model := make_model())

    def score(model):
        (fast.disable if wanted else fast.enable)(model)
        return {"bleu": 0.0}

    trainer = make_trainer(tmp_path, model, score=score, fast=wanted, max_steps=3, validate_every=2)
    (fast.disable if wanted else fast.enable)(model)
    found = []
    at_step(trainer, 1, lambda: found.append(fast.is_enabled(model)))
    at_step(trainer, 1, lambda: (fast.disable if wanted else fast.enable)(model), after=True)
    at_step(trainer, 2, lambda: found.append(fast.is_enabled(model)))
    at_step(trainer, 3, lambda: found.append(fast.is_enabled(model)))
    assert trainer.fit() and found == [wanted] * 3


def test_classes_are_chosen_again_only_after_some_were_swapped(tmp_path, monkeypatch):
    trainer = make_trainer(tmp_path, max_steps=9)
    chosen, enable = [], fast.enable
    monkeypatch.setattr(fast, "enable", lambda model: (chosen.append(trainer.step), enable(model)))
    at_step(trainer, 4, lambda: enable(trainer.model), after=True)  # swaps nothing
    at_step(trainer, 6, lambda: enable(trainer.model, skip_padding=False), after=True)
    trainer.fit()
    assert chosen == [0, 6]


def test_validation_does_not_disturb_training(tmp_path):
    plain = make_trainer(tmp_path / "plain")
    plain.fit()
    modes = []

    def score(model):
        modes.append(model.training)
        return {"bleu": 1.0}

    watched = make_trainer(
        tmp_path / "watched", validation=make_pairs(10, 1), score=score, validate_every=3
    )
    watched.fit()
    assert modes == [False] * 6  # steps 3, 6, 9, 12, 15 and the last
    assert_equal(weights_of(plain.model), weights_of(watched.model))
    validated = [x for x in read_curve(tmp_path / "watched/curve.jsonl") if "perplexity" in x]
    assert [line["step"] for line in validated] == [3, 6, 9, 12, 15, 16]
    assert all(line["bleu"] == 1.0 for line in validated)


def test_the_best_checkpoint_is_that_of_the_lowest_perplexity(tmp_path):
    from transformer.training.checkpoint import load_weights

    seen = {}
    trainer = make_trainer(
        tmp_path,
        make_model(dropout=0.0),
        make_pairs(6),
        validation=make_pairs(10, 1),  # random text: the more is learned, the worse it gets
        score=lambda model: seen.update({trainer.step: weights_of(model)}) or {},
        max_steps=40,
        warmup_steps=20,
        validate_every=8,
        save_every=100,
    )
    trainer.fit()
    lines = read_curve(tmp_path / "curve.jsonl")
    perplexities = {x["step"]: x["perplexity"] for x in lines if "perplexity" in x}
    best = min(perplexities, key=perplexities.get)
    assert best != 40, "the last must not be the best, or this test shows nothing"
    assert trainer.best == perplexities[best]
    assert_equal(load_weights(tmp_path / "checkpoints/best.safetensors"), seen[best])


def test_only_the_last_checkpoints_are_kept(tmp_path):
    trainer = make_trainer(tmp_path, max_steps=18, keep_last=2)
    trainer.fit()
    names = [path.name for path in trainer.checkpoints()]
    assert names == ["step-00000016.safetensors", "step-00000018.safetensors"]


def test_bfloat16_stays_near_float32(tmp_path):
    losses = {}
    for precision in ("fp32", "bf16", "fp32"):  # and back again, in one process
        trainer = make_trainer(tmp_path / precision, make_model(dropout=0.0), precision=precision)
        if precision not in losses:
            trainer.fit()
        lines = read_curve(tmp_path / precision / "curve.jsonl")
        losses[precision] = [line["loss"] for line in lines]
        assert all(weight.dtype == torch.float32 for weight in trainer.model.parameters())
    assert losses["bf16"] != losses["fp32"]
    assert losses["bf16"] == pytest.approx(losses["fp32"], rel=0.02)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="float16 training needs a GPU")
@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_half_precision_on_a_gpu_stays_near_float32(tmp_path, gpu, precision):
    losses = {}
    for kind in ("fp32", precision):
        make_trainer(tmp_path / kind, make_model(dropout=0.0), precision=kind).fit()
        losses[kind] = [line["loss"] for line in read_curve(tmp_path / kind / "curve.jsonl")]
    assert losses[precision] == pytest.approx(losses["fp32"], rel=0.05)


def test_recomputed_activations_give_the_same_gradients(tmp_path):
    expected = fit_and_record(make_trainer(tmp_path / "plain", max_steps=2))
    saving = make_trainer(tmp_path / "saving", max_steps=2, checkpoint_activations=True)
    calls = []
    layer = saving.model.encoder[0]
    layer.register_forward_pre_hook(lambda *_: calls.append(1))
    got = fit_and_record(saving)
    assert len(calls) == 4, "each step must run the layer once more, in the backward pass"
    for a, b in zip(expected, got, strict=True):  # dropout is on: its pattern must come again
        assert_close(a, b, rtol=1e-5, atol=1e-7)


def test_the_gradient_is_clipped(tmp_path):
    def norm(gradients):
        return torch.cat([g.flatten() for g in gradients.values()]).norm().item()

    (free,) = fit_and_record(make_trainer(tmp_path / "free", max_steps=1))
    limit = norm(free) / 10
    (clipped,) = fit_and_record(make_trainer(tmp_path / "clip", max_steps=1, clip_norm=limit))
    assert norm(clipped) == pytest.approx(limit, rel=1e-3)
    for name in free:
        torch.testing.assert_close(clipped[name], free[name] / 10, rtol=1e-3, atol=1e-8)
    (above,) = fit_and_record(make_trainer(tmp_path / "above", max_steps=1, clip_norm=1e3))
    assert_equal(above, free)


# ---------------------------------------------------------------------- NaN and infinity


@pytest.mark.parametrize("log_every", [1, 100])  # seen by the line of step 6, or by validation
def test_bad_weights_name_step_and_last_good_checkpoint(tmp_path, log_every):
    trainer = make_trainer(tmp_path, log_every=log_every, validation=make_pairs(10, 1))
    at_step(trainer, 6, lambda: trainer.model.embedding.weight.data.fill_(math.nan), after=True)
    with pytest.raises(RuntimeError) as caught:
        trainer.fit()
    message = str(caught.value)
    assert "weights are not after step 6" in message
    assert f"the last good checkpoint is step 4 in {tmp_path}" in message
    assert "in another folder" in message  # this one would refuse another learning rate
    assert "\n" not in message
    assert_finite_checkpoints(tmp_path, step=4)


def test_bad_weights_at_the_step_of_a_checkpoint_are_not_saved(tmp_path):
    trainer = make_trainer(tmp_path, log_every=100)

    def spoil():  # the loss of this step is finite, its gradient is not
        trainer.model.encoder[0].feed_forward.hidden.weight.grad[0, 0] = math.inf

    at_step(trainer, 8, spoil)
    with pytest.raises(RuntimeError, match="weights are not after step 8; .* is step 4 in"):
        trainer.fit()
    assert_finite_checkpoints(tmp_path, step=4)


def assert_finite_checkpoints(folder, step):
    from transformer.training.checkpoint import load_state, load_weights

    state = load_state(folder / "state.pt")
    assert state["progress"]["step"] == step
    files = list((folder / "checkpoints").glob("*.safetensors"))
    assert folder / f"checkpoints/step-{step:08d}.safetensors" in files
    for weights in (state["model"], *map(load_weights, files)):
        assert all(weight.isfinite().all() for weight in weights.values())
    for line in (folder / "curve.jsonl").read_text().splitlines():
        assert "NaN" not in line and json.loads(line)["step"] <= 2 * step
