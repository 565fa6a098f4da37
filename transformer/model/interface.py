"""What training asks of a model, for readers and for type checkers.

Python has no type for "a ``torch.nn.Module`` that also has these methods": a Protocol cannot
inherit from a class. So the few methods of a module that are used stand here once, and the
Protocols of training and search build on them.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

_Layer = TypeVar("_Layer", covariant=True)


@runtime_checkable
class ModuleLike(Protocol):
    """The part of :class:`torch.nn.Module` that this package uses."""

    training: bool

    def __call__(self, *inputs: Any) -> Any: ...

    def train(self, mode: bool = True) -> Any: ...

    def eval(self) -> Any: ...

    def to(self, device: torch.device | str) -> Any: ...

    def modules(self) -> Iterator[nn.Module]: ...

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> Any: ...


class Stack(ModuleLike, Protocol[_Layer]):
    """An ``nn.ModuleList`` whose type says what it holds.

    Paper: section 3.1
    """

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[_Layer]: ...

    def __getitem__(self, index: int) -> _Layer: ...


@runtime_checkable
class StoredModel(ModuleLike, Protocol):
    """What a model must offer to be written as a folder that the Hub understands."""

    config: Any

    def save_pretrained(self, save_directory: str | Path) -> Any: ...


@runtime_checkable
class TranslationModel(ModuleLike, Protocol):
    """What a model must offer to be trained, be it a Transformer or one that it is compared with.

    ``config`` has ``pad_id``, ``d_model`` and ``to_dict()``. The loss multiplies the decoder's
    states by ``output_weight`` itself, only where there is a token to predict.

    Paper: section 3, Figure 1
    """

    config: Any

    @property
    def output_weight(self) -> Float[Tensor, "V d_model"]: ...

    def encode(self, source: Int[Tensor, "B S"]) -> Any: ...

    def decoder_states(
        self, target: Int[Tensor, "B T"], memory: Any, source: Int[Tensor, "B S"]
    ) -> Float[Tensor, "B T d_model"]: ...
