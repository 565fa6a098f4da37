"""Changes to a preset given as text, such as ``d_model=256`` on the command line."""

from collections.abc import Sequence
from typing import Any, get_args

from transformer.recipes.presets import Preset

_WORDS = {"true": True, "false": False, "none": None}


def parse_changes(preset: Preset, assignments: Sequence[str]) -> dict[str, Any]:
    """Turn texts ``field=value`` into arguments of ``preset.with_changes``, which checks them.

    Of two values for one field the last counts.

    Raises:
        ValueError: if a text has no "=", or there is no such field.
    """
    changes = {}
    for assignment in assignments:
        name, equals, text = (part.strip() for part in assignment.partition("="))
        if not equals:
            raise ValueError(f"a change is written FIELD=VALUE, got {assignment!r}")
        if name == "init_from":
            raise ValueError("init_from is an option of its own: --init-from MODEL")
        kind = preset.field(name)[1]
        changes[name] = text if kind is str else _read(text, (kind, *get_args(kind)))
    return changes


def _read(text: str, kinds: tuple[Any, ...]) -> Any:
    """Return a word, or a number of one of the kinds; or the text in small letters."""
    for kind in [kind for kind in (int, float) if kind in kinds]:
        try:
            return kind(text)
        except ValueError:
            pass
    return _WORDS.get(text.lower(), text.lower())
