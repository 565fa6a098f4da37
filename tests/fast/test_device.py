"""What is set up on a GPU, and when a machine can compile; any build can read the settings."""

import sysconfig
import warnings

import pytest
import torch

from transformer.data.tokenizer import Tokenizer
from transformer.fast import device
from transformer.fast.device import missing_for_compiling, set_up
from transformer.inference import translator
from transformer.inference.translator import Translator
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer.training import checks, step, trainer


@pytest.fixture
def as_installed(monkeypatch):
    """Settings of PyTorch as they are when it is imported, and again after the test."""
    before = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(True)
    monkeypatch.setattr(torch.compiler.config, "cache_key_tag", "mine")
    yield
    torch.backends.cuda.enable_cudnn_sdp(before)


def test_cuda_runs_without_cudnn_attention(as_installed, monkeypatch):
    resets = []
    monkeypatch.setattr(torch.compiler, "reset", lambda: resets.append(1))
    set_up(torch.device("cpu"))
    assert torch.backends.cuda.cudnn_sdp_enabled() and not resets
    for _ in range(2):
        set_up(torch.device("cuda", 0))
        assert not torch.backends.cuda.cudnn_sdp_enabled()
        assert len(resets) == 1, "graphs with the old choice are dropped, once"
        # Nor are files of the compiler used that contain it.
        assert torch.compiler.config.cache_key_tag == "mine without cuDNN attention"
    others = "flash_sdp_enabled", "mem_efficient_sdp_enabled", "math_sdp_enabled"
    assert all(getattr(torch.backends.cuda, name)() for name in others)


def test_trainer_and_translator_set_their_device_up(monkeypatch, tmp_path):
    from tests.training.tiny_training import make_trainer

    seen = []
    for module in (step, translator):
        monkeypatch.setattr(module, "set_up", lambda d, m=module: seen.append((m, d.type)))
    make_trainer(tmp_path)
    assert seen == [(step, "cpu")]
    tokenizer = Tokenizer.train(["a b c d"] * 9, vocab_size=260)
    model = Transformer(TransformerConfig(260, d_model=8, d_ff=8, num_heads=1, num_layers=1))
    seen.clear()
    Translator(model, tokenizer, "meta")
    assert (translator, "meta") in seen


@pytest.fixture
def complete(monkeypatch, tmp_path):
    """A machine with all that compiling needs."""
    (tmp_path / "include").mkdir()
    (tmp_path / "include/Python.h").touch()
    for variable in ("CC", "CXX"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(device, "find_spec", lambda name: object())
    monkeypatch.setattr(device.shutil, "which", lambda name: name)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path / name))
    return tmp_path


def test_what_compiling_needs(complete, monkeypatch):
    assert [missing_for_compiling(kind) for kind in ("cuda", "cpu", "mps")] == [None] * 3
    monkeypatch.setenv("CC", "/opt/none")
    monkeypatch.setattr(device.shutil, "which", lambda name: name if name != "/opt/none" else None)
    assert missing_for_compiling("cpu") is None
    assert missing_for_compiling("cuda") == "a C compiler: CC is '/opt/none'"
    monkeypatch.delenv("CC")
    (complete / "include/Python.h").unlink()
    for kind in ("cuda", "cpu"):
        assert "the headers of Python" in missing_for_compiling(kind)
    monkeypatch.setattr(device.shutil, "which", lambda name: None)
    assert "a C++ compiler" in missing_for_compiling("cpu")
    assert "a C compiler" in missing_for_compiling("cuda")
    monkeypatch.setattr(device, "find_spec", lambda name: None)
    assert "Triton" in missing_for_compiling("cuda")


def test_a_compiler_under_another_name_is_not_found(complete, monkeypatch):
    monkeypatch.setattr(
        device.shutil, "which", lambda name: name if name in ("cc", "c++") else None
    )
    assert "a C compiler" in missing_for_compiling("cuda")
    assert "a C++ compiler" in missing_for_compiling("cpu")
    monkeypatch.setenv("CC", "cc")
    assert missing_for_compiling("cuda") is None


@pytest.mark.parametrize("capability, can", [((6, 1), False), ((7, 0), True), ((9, 0), True)])
def test_the_compiler_needs_a_gpu_that_triton_knows(complete, monkeypatch, capability, can):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: capability)
    assert (missing_for_compiling("cuda") is None) == can
    assert missing_for_compiling("cpu") is None


def test_on_cuda_the_loss_is_compiled_if_the_machine_can(complete, monkeypatch):
    cuda, cpu = torch.device("cuda", 0), torch.device("cpu")
    assert checks.compiles_loss(cuda) and not checks.compiles_loss(cpu)
    monkeypatch.setattr(device, "find_spec", lambda name: None)
    assert not checks.compiles_loss(cuda)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("sharded", [False, True])
def test_the_loss_is_compiled_whether_the_model_is_or_not(tmp_path, monkeypatch, compiled, sharded):
    from tests.training.tiny_training import make_trainer

    found = []
    monkeypatch.setattr(checks, "compiles_loss", lambda device: True)
    monkeypatch.setattr(torch, "compile", lambda f, **_: found.append(f) or f)
    if sharded:
        monkeypatch.setattr(trainer.Accelerator, "num_processes", 2)
        monkeypatch.setattr(checks, "require_all_processes", lambda joined: None)
        monkeypatch.setattr(step.state, "shard", lambda *_: None)
    assert make_trainer(tmp_path, compile=compiled, shard=True).sharded == sharded
    # The loss; and the model, as a whole or, if it is sharded, its two layers one by one.
    assert len(found) == 1 + compiled * (2 if sharded else 1)


def test_without_a_compiler_training_runs_uncompiled_and_warns_once(tmp_path, monkeypatch):
    from tests.training.tiny_training import assert_equal, make_trainer, weights_of

    plain = make_trainer(tmp_path / "plain", max_steps=2)
    assert plain.fit()
    monkeypatch.setattr(checks, "missing_for_compiling", lambda kind: "a C compiler")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        eager = make_trainer(tmp_path / "eager", max_steps=2, compile=True)
        assert eager.fit()
    said = [str(w.message) for w in found if "compile" in str(w.message)]
    assert said == ["compile=True needs a C compiler; training runs uncompiled, which is slower"]
    assert not eager.compiled
    assert_equal(weights_of(plain.model), weights_of(eager.model))
