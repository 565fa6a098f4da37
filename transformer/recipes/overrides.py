"""Changes to a preset given as text, such as ``d_model=256`` on the command line."""

import math
from collections.abc import Sequence
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from transformer.recipes.presets import Preset

_NAMES = {int: "an integer", float: "a number", bool: "true or false", NoneType: "none"}


def parse_changes(preset: Preset, assignments: Sequence[str]) -> dict[str, Any]:
    """Turn texts ``field=value`` into arguments of ``preset.with_changes``.

    Of two values for one field the last counts.

    Raises:
        ValueError: if a text has no "=", or the field or the value is invalid.
    """
    changes = {}
    for assignment in assignments:
        name, equals, text = (part.strip() for part in assignment.partition("="))
        if not equals:
            raise ValueError(f"a change is written FIELD=VALUE, got {assignment!r}")
        if name == "init_from":
            raise ValueError("init_from is an option of its own: --init-from MODEL")
        changes[name] = parse_value(name, text, preset.field(name)[1])
    return changes


def parse_value(name: str, text: str, kind: Any) -> Any:
    """Read a text as int, float, bool, str, a ``Literal`` of texts, or a union of these and None.

    Raises:
        ValueError: if the text is no such value; the message has the ``name`` of the field.
    """
    single = get_origin(kind) in (Literal, None)
    kinds = [kind] if single else list(get_args(kind))  # the parts of a union
    for one in kinds:
        try:
            return _read(text, one)
        except ValueError:
            pass
    expected = " or ".join(_describe(one) for one in kinds)
    raise ValueError(f"{name} must be {expected}, got {text!r}")


def _read(text: str, kind: Any) -> Any:
    if kind in (int, float, str):
        value = kind(text)
        if kind is float and not math.isfinite(value):
            raise ValueError
        return value
    fixed: dict[Any, dict[str, Any]] = {
        bool: {"true": True, "false": False},
        NoneType: {"none": None},
    }
    words = fixed.get(kind) or {choice: choice for choice in get_args(kind)}
    if text.lower() not in words:
        raise ValueError
    return words[text.lower()]


def _describe(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"one of {', '.join(get_args(kind))}"
    return _NAMES[kind]
