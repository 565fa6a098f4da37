"""The same model, faster on a CPU: :func:`enable` swaps classes in a model that is already built.

Parameters, ``state_dict``, references of an optimizer and the state of the random number
generators stay as they are. Results differ by rounding only, with one exception: dropout draws
other numbers from the same generator.
"""

from torch import nn

from transformer.fast.dropout import Dropout
from transformer.fast.linear import Linear
from transformer.fast.packing import PackedAttention, PackedTransformer
from transformer.model.attention import MultiHeadAttention
from transformer.model.transformer import Transformer

_FAST: dict[type[nn.Module], type[nn.Module]] = {
    nn.Linear: Linear,
    nn.Dropout: Dropout,
    MultiHeadAttention: PackedAttention,
    Transformer: PackedTransformer,
}
_PLAIN = {fast: plain for plain, fast in _FAST.items()}

#: How many classes of modules have been swapped in this process, in whatever model.
swaps = 0


def enable(model: nn.Module, skip_padding: bool = True) -> None:
    """Swap the classes of a model's modules for those that are faster on a CPU, in place.

    Modules of other classes, such as subclasses, wrappers and replacements, stay as they are. On
    other devices the fast classes compute what the plain ones do. With ``skip_padding``, all
    layers but attention run on the real positions only in training; False keeps (B, T, d_model)
    inputs everywhere, for hooks that need them.
    """
    classes = _FAST if skip_padding else {nn.Linear: Linear, nn.Dropout: Dropout}
    _swap(model, classes)


def disable(model: nn.Module) -> None:
    """Undo :func:`enable`."""
    _swap(model, {})


def is_enabled(model: nn.Module) -> bool:
    """Say whether a model has modules of the fast classes."""
    return any(type(module) in _PLAIN for module in model.modules())


def plain_class(module: nn.Module) -> type[nn.Module]:
    """Return the class of a module as it was before :func:`enable`."""
    return _PLAIN.get(type(module), type(module))


def _swap(model: nn.Module, classes: dict[type[nn.Module], type[nn.Module]]) -> None:
    """Give each module the class that replaces its plain one, or the plain one itself."""
    global swaps
    for module in model.modules():
        plain = plain_class(module)
        wanted = classes.get(plain, plain)
        if type(module) is not wanted:
            module.__class__ = wanted
            swaps += 1
