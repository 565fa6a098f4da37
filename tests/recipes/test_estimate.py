"""Estimates agree with measurements: operations, files, activations and times of real runs."""

from types import SimpleNamespace

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from transformer.baselines import RecurrentConfig
from transformer.fast import enable
from transformer.fast.packing import PackedAttention
from transformer.model.attention import MultiHeadAttention
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer.recipes import estimate
from transformer.recipes.estimate import (
    activation_bytes,
    estimate_time,
    require_disk,
    requirements,
    run_bytes,
    size,
    training_flops,
)
from transformer.recipes.presets import PRESETS, Preset
from transformer.recipes.translation import TranslationRun
from transformer.training.config import TrainingConfig
from transformer.training.loss import TranslationLoss


@pytest.mark.parametrize("sizes", [
    dict(d_k=5, d_v=12), dict(num_decoder_layers=3), dict(sharing="none", norm="pre"),
    dict(num_kv_heads=1, activation="swiglu"),
])  # fmt: skip
def test_operations_are_those_that_pytorch_counts(sizes):
    config = TransformerConfig(50, d_model=16, d_ff=24, num_heads=2, num_layers=2, **sizes)
    model = Transformer(config)
    source, target = torch.randint(3, 50, (4, 11)), torch.randint(3, 50, (4, 7))
    # PyTorch does not count within its fused attention on the CPU.
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        logits = model(source, target)
        forward = counter.get_total_flops()
        logits.sum().backward()
    assert 3 * forward == counter.get_total_flops() == 4 * training_flops(config, 11, 7)


def test_the_folder_of_a_run_is_as_large_as_computed(tmp_path, preset, corpus):
    run = TranslationRun(preset.with_changes(d_model=96, keep_last=3, save_every=2), tmp_path / "r",
                         corpus=corpus)  # fmt: skip
    parameters = run.model.num_parameters()
    run.train()
    run.finish()
    tensors = [*run.folder.rglob("*.safetensors"), run.folder / "state.pt"]
    total = sum(path.stat().st_size for path in tensors)
    # Three checkpoints, the best one, the model, and the state, which is written beside the old.
    assert total == pytest.approx(4 * parameters * 5 + 12 * parameters, rel=0.05)
    assert run_bytes(parameters, keep_last=3) == 4 * parameters * 6 + 24 * parameters


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(
    "sizes", [{}, dict(num_decoder_layers=1), dict(d_ff=512), dict(norm="pre"), dict(num_layers=5)]
)
def test_activations_are_what_autograd_keeps(sizes, precision, monkeypatch):
    config = TransformerConfig(100, **dict(d_model=64, d_ff=256, num_heads=4, num_layers=3) | sizes)
    model = Transformer(config)
    enable(model)
    # As on a GPU: on a CPU the faster attention computes in float32 under autocast.
    monkeypatch.setattr(PackedAttention, "attend", MultiHeadAttention.attend)
    loss, ids = TranslationLoss(model), torch.randint(3, 100, (3, 64, 16))
    known = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept = {}

    def keep(tensor):
        if tensor.untyped_storage().data_ptr() not in known:
            kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with (
        torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
        torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"),
    ):
        loss(*ids)
    total = sum(tensor.untyped_storage().nbytes() for tensor in kept.values())
    training = TrainingConfig(batch_tokens=64 * 16, precision=precision)
    assert activation_bytes(config, training) == pytest.approx(total, rel=0.08)


def test_needs_of_the_papers_models():
    base, big = (requirements(PRESETS[f"wmt14-{n}"], on_gpu=True) for n in ("base", "big"))
    assert base.parameters == 63_082_496 and base.hours is None
    assert base.disk == base.download + base.text + base.folder > base.download == 820_000_000
    assert 8e9 < base.device_memory < 16e9 and big.device_memory < 24e9
    # The best weights, a checkpoint and Adam's moments may wait in memory at the same time.
    copies = 16 * (big.parameters - base.parameters)
    assert big.main_memory - base.main_memory == copies > 2e9
    here = requirements(PRESETS["wmt14-base"], seconds=7200.0, devices=2, at_hand=True)
    assert here.disk == here.folder
    assert "time: about 2.0 hours on 2 devices, by the steps" in here.lines()[-1]
    needs = requirements(Preset("toy", RecurrentConfig(50, d_model=16)), on_gpu=True)
    assert needs.device_memory is None and needs.parameters > 0


def test_the_time_that_is_left(tmp_path, preset, corpus, monkeypatch):
    """8 steps, a validation every 4 on 5 of 12 pairs, 12 test pairs by greedy search and beam 2."""
    run = TranslationRun(preset, tmp_path / "run", corpus=corpus)
    weights = {name: w.clone() for name, w in run.model.state_dict().items()}
    random, tests = torch.get_rng_state(), list(run.tests.values())

    def left():
        return estimate_time(preset, run.trainer, run.translator, run.validation, tests)

    assert left() > 0 and torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(w, weights[name]) for name, w in run.model.state_dict().items())
    assert all(p.grad is None for p in run.model.parameters())
    monkeypatch.setattr(estimate, "measure_step", lambda trainer, repeats=3: 2.0)
    monkeypatch.setattr(
        estimate, "_seconds_per_sentence", lambda t, s, beam: {1: 0.1, 2: 0.5}[beam]
    )
    validation = len(run.trainer.validation) * 2.0 / 3 + 5 * 0.1
    evaluation = 2 * 12 * (0.1 + 0.5)
    for step, expected in ((0, 16 + 2 * validation), (5, 6 + validation), (8, 0)):
        run.trainer.step = step
        assert left() == pytest.approx(expected + evaluation)


def test_numbers_in_words():
    sizes = {12: "12 bytes", 2_300: "2.3 kB", 820_000_000: "820 MB", 3_200_000_000_000: "3,200 GB"}
    assert {count: size(count) for count in sizes} == sizes


def test_free_disk_is_compared_with_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=1000))
    new, begun = tmp_path / "a/new", tmp_path / "begun"
    begun.mkdir()
    (begun / "state.pt").write_bytes(bytes(5000))
    require_disk({new: 400, begun: 5600})  # which already holds 5,000 of them
    for needs in ({new: 1001}, {begun: 6001}, {new: 401, begun: 5600}):  # on one disk
        with pytest.raises(OSError, match=r"needs 1.0 kB more, but its disk has 1.0 kB free"):
            require_disk(needs)
    assert not new.exists()
