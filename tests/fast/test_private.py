"""A PyTorch without one of the private names runs the plain path, with the same results."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.training.tiny_training import assert_close, make_model, make_trainer, weights_of
from transformer.fast import linear, private
from transformer.inference.translator import Translator

ROOT = Path(__file__).parents[2]

# Each with the question that needs it.
NAMES: dict[str, Callable[[], bool]] = {
    "torch._C._are_functorch_transforms_active": private.may_be_transformed,
    "torch._C._is_torch_function_mode_enabled": private.may_be_watched,
    "torch._C._len_torch_dispatch_stack": private.may_be_watched,
    "torch.ops.mkldnn._linear_pointwise": lambda: not private.has_one_dnn_product(),
    "nn.modules.module._has_any_global_hook": lambda: private.may_have_hooks(nn.Linear(1, 1)),
    "HOOKS": lambda: private.may_have_hooks(nn.Linear(1, 1)),
    "COMPILED": lambda: private.may_be_replaced(nn.Linear(1, 1)),
}


class Without:
    """Anything that lacks one name, whose dots lead through its parts."""

    def __init__(self, whole: Any, name: str):
        self.whole, self.name = whole, name

    def __getattr__(self, name: str) -> Any:
        first, _, rest = self.name.partition(".")
        if name != first:
            return getattr(self.whole, name)
        if not rest:
            raise AttributeError(name)
        return Without(getattr(self.whole, name), rest)


def trained(folder, fast: bool) -> dict[str, torch.Tensor]:
    trainer = make_trainer(folder, make_model(dropout=0.0), max_steps=2, fast=fast, adam_eps=1e-3)
    trainer.fit()
    return weights_of(trainer.model)


def remove(name: str, monkeypatch) -> None:
    """Take a name away from the PyTorch that the fast path asks; PyTorch itself may need it."""
    owner, _, gone = name.partition(".")
    replacement: Any = Without(getattr(private, owner), gone)
    if not gone:  # names of attributes
        replacement = "_gone" if owner == "COMPILED" else ("_gone",)
    monkeypatch.setattr(private, owner, replacement)


TEXTS = ["A dog runs.", "Two men."]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Weights and translations of the plain path."""
    translator = Translator.from_pretrained("tatoeba-en-de", fast=False)
    return trained(tmp_path_factory.mktemp("plain"), False), translator(TEXTS)


@pytest.mark.parametrize("name", NAMES)
def test_without_a_private_name_all_stays_right(name, plain, tmp_path, monkeypatch):
    remove(name, monkeypatch)
    monkeypatch.setattr(linear, "_HAS_IDLE_UNITS", private.has_one_dnn_product())
    monkeypatch.setattr(linear, "_FEWEST_MULTIPLICATIONS", 1)
    assert_close(trained(tmp_path, True), plain[0])
    assert Translator.from_pretrained("tatoeba-en-de")(TEXTS) == plain[1]


@pytest.mark.parametrize("name", NAMES)
def test_what_cannot_be_asked_forbids_the_fast_path(name, monkeypatch):
    assert not NAMES[name]() or "mkldnn" in name  # which not every PyTorch has
    remove(name, monkeypatch)
    assert NAMES[name]()


def test_no_other_module_reaches_for_private_names_of_pytorch_or_accelerate():
    private_name = re.compile(r"\b(torch|nn|F|Accelerat\w+|PartialState)(\.\w+)*\._[a-z]\w*")
    found = [
        (path.name, line)
        for path in (ROOT / "transformer").rglob("*.py")
        if path.name != "private.py" and not {"lab", "book"} & {*path.parts}
        for line in path.read_text(encoding="utf-8").splitlines()
        if private_name.search(line)
    ]
    assert found == []
