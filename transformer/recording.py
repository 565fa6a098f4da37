"""Recording attention weights: ``with record_attention(model) as maps:``.

An attention layer asks :func:`recorders_of` whether to record its weights. If not, it may use a
kernel that never stores them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

from torch import Tensor, nn


class RecordedAttention(dict[str, Tensor]):
    """Attention weights (B, H, T, S) by the name of the module that computed them.

    For a :class:`~transformer.model.transformer.Transformer` the names are such as
    "encoder.0.self_attention" and "decoder.2.cross_attention".

    Paper: section 3.2.3, Figures 3 to 5
    """

    @property
    def encoder(self) -> list[Tensor]:
        """Self-attention of the encoder, a tensor per layer."""
        return [self[name] for name in self if "encoder" in name.split(".")]

    @property
    def decoder(self) -> list[Tensor]:
        """Self-attention of the decoder, a tensor per layer."""
        names = [name for name in self if name.endswith("self_attention")]
        return [self[name] for name in names if "decoder" in name.split(".")]

    @property
    def cross(self) -> list[Tensor]:
        """Attention of the decoder to the encoder's output, a tensor per layer."""
        return [self[name] for name in self if name.endswith("cross_attention")]


Recorder = Callable[[Tensor], None]

# The recorders of the open ``record_attention`` blocks around the running code, innermost last.
# Not an attribute of the modules: other threads may be running the same model.
_RECORDERS: ContextVar[tuple[dict[nn.Module, Recorder], ...]] = ContextVar("recorders", default=())
# One item per open block in any thread. torch.compile cannot trace a ContextVar, but it traces the
# test whether a list is empty and compiles again when the answer changes.
_OPEN: list[None] = []


def recorders_of(attention: nn.Module) -> list[Recorder]:
    """Return what is to be called with the weights of a running layer, nothing as a rule."""
    if not _OPEN:
        return []
    return [each[attention] for each in _RECORDERS.get() if attention in each]


@contextmanager
def record_attention(model: nn.Module) -> Iterator[RecordedAttention]:
    """Record the attention weights of every layer while the ``with`` block runs.

    If a layer runs more than once, only its last weights are kept. They are part of the graph:
    gradients flow through them. With ``checkpoint_activations`` the backward pass runs each layer
    again, so call ``backward`` inside the block too.

    Other threads may use the model meanwhile, and record it themselves: a block sees what its own
    thread runs. Blocks may be nested and may end in any order; each records all that runs in it.

    Args:
        model: a model, or a single attention layer, whose name is then "".

    Paper: section 3.2.3, Figures 3 to 5
    """
    recorded = RecordedAttention()
    recorders: dict[nn.Module, Recorder] = {
        module: partial(recorded.__setitem__, name) for name, module in model.named_modules()
    }
    _OPEN.append(None)
    _RECORDERS.set((*_RECORDERS.get(), recorders))
    try:
        yield recorded
    finally:
        # Not by a token, which would also close a block that was opened later and is still open.
        _RECORDERS.set(tuple(each for each in _RECORDERS.get() if each is not recorders))
        recorders.clear()  # the block may end in another context than it began in
        _OPEN.pop()


def with_recorders(layer: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a layer that tells the recorders of now, whichever thread runs it.

    A checkpoint runs a layer again in the backward pass, which has threads of its own on a GPU.
    """
    if not _OPEN:
        return layer
    recorders = _RECORDERS.get()

    def run(*inputs: Any) -> Tensor:
        token = _RECORDERS.set(recorders)
        try:
            return layer(*inputs)
        finally:
            _RECORDERS.reset(token)

    return run
