"""What a run is said to need is what it needs: counted on real folders and real forward passes."""

import pytest
import torch

from transformer.baselines import RecurrentConfig
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer.recipes import requirements as module
from transformer.recipes.presets import PRESETS, Preset, get_preset
from transformer.recipes.requirements import (
    ASSUMED_PRICE,
    activation_bytes,
    duration,
    requirements,
    run_bytes,
    size,
    training_bytes,
)
from transformer.recipes.translation import TranslationRun
from transformer.training.config import TrainingConfig
from transformer.training.loss import TranslationLoss


def test_the_folder_of_a_run_is_as_large_as_computed(tmp_path, preset, corpus):
    run = TranslationRun(preset.with_changes(d_model=96, keep_last=3, save_every=2), tmp_path / "r",
                         corpus=corpus)  # fmt: skip
    parameters = run.model.num_parameters()
    fullest = 0
    save = run.trainer._save

    def watching(weights):
        nonlocal fullest
        save(weights)
        fullest = max(fullest, total())

    def total():
        tensors = [*run.folder.rglob("*.safetensors"), run.folder / "state.pt"]
        return sum(path.stat().st_size for path in tensors)

    run.trainer._save = watching
    run.train()
    run.finish()
    # Three checkpoints, the best one and the model; the state once. While they are written there
    # are one checkpoint and one state more.
    assert total() == pytest.approx(4 * parameters * 5 + 12 * parameters, rel=0.05)
    assert run_bytes(parameters, keep_last=3) == 4 * parameters * 6 + 24 * parameters
    assert fullest <= run_bytes(parameters, keep_last=3)


def kept_for_backward(config, precision, batch=64, length=16):
    """Bytes of all that autograd keeps in one forward pass, the weights not counted."""
    model = Transformer(config)
    loss = TranslationLoss(model)
    ids = torch.randint(3, config.vocab_size, (3, batch, length))
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
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(
    "sizes", [{}, dict(num_decoder_layers=1), dict(d_ff=512), dict(norm="pre"), dict(num_layers=5)]
)
def test_activations_are_what_autograd_keeps(sizes, precision):
    config = TransformerConfig(100, **dict(d_model=64, d_ff=256, num_heads=4, num_layers=3) | sizes)
    training = TrainingConfig(batch_tokens=64 * 16, precision=precision)
    kept = kept_for_backward(config, precision)
    assert activation_bytes(config, training) == pytest.approx(kept, rel=0.08)


def test_recomputed_activations_take_less():
    config, training = PRESETS["wmt14-big"].model, PRESETS["wmt14-big"].training
    less = TrainingConfig(**training.to_dict() | dict(checkpoint_activations=True))
    assert activation_bytes(config, less) < activation_bytes(config, training) / 3


def test_memory_of_the_device_by_hand():
    config = TransformerConfig(1000, d_model=64, d_ff=256, num_heads=4, num_layers=1)
    training = TrainingConfig(batch_tokens=512)
    rest = activation_bytes(config, training)
    # 4 bytes each for weight, gradient and two moments; two logits a row, one gradient.
    expected = 16 * 5_000_000 + rest + 512 * 1000 * 8 + 1000 * 64 * 4
    assert training_bytes(config, training, 5_000_000) == expected
    fewer = training_bytes(config, training, 5_000_000, on_gpu=False)
    assert expected - fewer == 256 * 1000 * 8


def test_of_the_papers_models():
    base, big = (requirements(PRESETS[f"wmt14-{n}"], on_gpu=True) for n in ("base", "big"))
    assert base.parameters == 63_082_496 and base.hours is None and base.cost is None
    assert base.folder == 4 * base.parameters * 8 + 24 * base.parameters
    assert big.folder == 4 * big.parameters * 23 + 24 * big.parameters
    assert base.download == big.download == 820_000_000 and base.text > base.download
    assert base.disk == base.download + base.text + base.folder
    # Both fit a GPU of 24 GB: said so that nobody rents a larger one than needed.
    assert 8e9 < base.device_memory < 16e9 and big.device_memory < 24e9
    here = requirements(PRESETS["wmt14-base"], on_gpu=True, at_hand=True)
    assert here.download == here.text == 0 and here.disk == here.folder
    assert here.main_memory == base.main_memory


def test_hours_and_cost():
    preset = get_preset("wmt14-base")
    needs = requirements(preset, seconds=7200.0, devices=2, price=5.0)
    assert needs.hours == pytest.approx(2.0)
    assert needs.cost == pytest.approx(20.0)
    text = "\n".join(needs.lines())
    for part in ("63,082,496 parameters", "disk: 5.7 GB (820 MB of it to download at most",
                 "time: about 2.0 hours on 2 devices", "$20.00 at $5.00 an hour and device",
                 "as you said"):  # fmt: skip
        assert part in text
    alone = requirements(preset, seconds=3600.0, on_gpu=True)
    assert alone.hours == pytest.approx(1.0) and alone.cost == pytest.approx(ASSUMED_PRICE)
    assert "time: about 60 minutes, by" in "\n".join(alone.lines())
    assert "an assumption; --price gives another" in alone.lines()[-1]


def test_a_cpu_has_no_price_unless_it_is_given():
    preset = get_preset("multi30k-tiny")
    assert requirements(preset, seconds=1.0, on_gpu=False).cost is None
    assert requirements(preset, seconds=1.0, on_gpu=False, price=0.1).cost > 0
    lines = requirements(preset, on_gpu=False).lines()
    assert not any(line.startswith(("cost", "time")) for line in lines)
    assert "download" not in "\n".join(lines)


def test_whether_there_is_a_gpu_is_asked(monkeypatch):
    monkeypatch.setattr(module.torch.cuda, "is_available", lambda: True)
    assert requirements(get_preset("smoke"), seconds=1.0).price == ASSUMED_PRICE


def test_other_models_have_no_estimate_of_activations():
    needs = requirements(Preset("toy", RecurrentConfig(50, d_model=16)), on_gpu=True)
    assert needs.device_memory is None and needs.parameters > 0
    assert "device" not in "\n".join(needs.lines())


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_has_needs(name):
    needs = requirements(PRESETS[name])
    assert needs.lines()[0].startswith(f"needs of {name}, ") and needs.folder > 0


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(seconds=-1.0), "seconds must be at least 0, got -1.0"),
        (dict(price=-2.0), "price must be at least 0"),
        (dict(devices=0), "devices must be at least 1, got 0"),
    ],
)
def test_impossible_numbers(options, message):
    with pytest.raises(ValueError, match=message):
        requirements(PRESETS["smoke"], **options)


@pytest.mark.parametrize(
    "count, text",
    [(12, "12 bytes"), (2_300, "2.3 kB"), (820_000_000, "820 MB"), (5_690_000_000, "5.7 GB"),
     (27_000_000_000, "27 GB"), (3_200_000_000_000, "3,200 GB")],
)  # fmt: skip
def test_sizes_are_said_as_a_person_would(count, text):
    assert size(count) == text


@pytest.mark.parametrize(
    "seconds, text", [(5.2, "5 seconds"), (150.0, "2 minutes"), (7200.0, "2.0 hours")]
)
def test_durations_are_said_as_a_person_would(seconds, text):
    assert duration(seconds) == text
