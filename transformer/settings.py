"""What counts as a number, and the checks that all configurations and options share.

NumPy's numbers are numbers, and so are arrays and tensors without axes. Each becomes the plain
Python number that JSON and checkpoints can hold. True and False are no numbers.
"""

import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Kind = TypeVar("Kind")  # not Self, which beartype cannot check here


@dataclass(frozen=True)
class Allowed:
    """What an option may be: ``COUNT("batch_size", 8)`` returns 8, or says what is expected."""

    words: str
    fits: Callable[[Any], bool]

    def __call__(self, name: str, value: Any) -> Any:
        """Return a value as a plain one; ValueError if it is not allowed."""
        if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
            value = value.item()
        if not self.fits(value):
            raise ValueError(f"{name} must be {self.words}, got {value!r:.60}")
        return value


def whole(least: int, most: int | None = None) -> Allowed:
    """Allow whole numbers from ``least`` to ``most``, without a limit if it is None."""

    def fits(value: Any) -> bool:
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        return is_whole and least <= value and (most is None or value <= most)

    bounds = f"of at least {least}" if most is None else f"from {least:,} to {most:,}"
    return Allowed(f"a whole number {bounds}", fits)


def number(words: str, fits: Callable[[float], bool] = math.isfinite) -> Allowed:
    """Allow finite numbers for which ``fits`` is true."""

    def fits_too(value: Any) -> bool:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return is_number and -math.inf < value < math.inf and fits(value)

    return Allowed(f"a {words}", fits_too)


def one_of(names: tuple[str, ...]) -> Allowed:
    """Allow some names."""
    return Allowed(f"one of {names}", names.__contains__)


def or_none(allowed: Allowed) -> Allowed:
    """Allow None, too."""
    return Allowed(f"None or {allowed.words}", lambda value: value is None or allowed.fits(value))


COUNT = whole(1)
FINITE = number("finite number")
NOT_NEGATIVE = number("finite number of at least 0", lambda x: x >= 0)
POSITIVE = number("finite number above 0", lambda x: x > 0)
RATE = number("number in [0, 1)", lambda x: 0 <= x < 1)
SWITCH = Allowed("True or False", lambda value: isinstance(value, bool))


@dataclass(frozen=True)
class Settings:
    """The base of configurations and options: refuses unknown names, and values out of range.

    The type of a field says what it may be: a number, True or False, one of the names of a
    ``Literal``; None where the type has it. Fields of other types are not checked.
    """

    # What errors call a field.
    _kind: ClassVar[str] = "field"
    # The numbers that a field takes, if not all whole ones from 1 on, or all finite ones.
    _numbers: ClassVar[Mapping[str, Allowed]] = {}

    def __new__(cls: type[Kind], *args: Any, **values: Any) -> Kind:
        """Refuse a name that is no field with a TypeError that has the nearest name."""
        try:
            require_fields(cls, values)
        except ValueError as error:
            raise TypeError(str(error)) from None
        return object.__new__(cls)

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for name, allowed in _allowed(kind).items():
            # A frozen dataclass has no other way.
            object.__setattr__(self, name, allowed(name, getattr(self, name)))

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain values."""
        return asdict(self)


@cache
def _allowed(settings: Any) -> dict[str, Allowed]:
    """Return what the fields of a class may be, by name."""
    hints, found = get_type_hints(settings), {}
    for name in (field.name for field in fields(settings)):
        types = get_args(hints[name]) if _is_union(hints[name]) else (hints[name],)
        kind, *others = (each for each in types if each is not NoneType)
        if get_origin(kind) is Literal:
            allowed = one_of(get_args(kind))
        elif kind in (int, float, bool) and not others:
            usual = {int: COUNT, float: FINITE, bool: SWITCH}[kind]
            allowed = settings._numbers.get(name, usual)
        else:
            continue
        found[name] = or_none(allowed) if NoneType in types else allowed
    return found


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, UnionType)


def require_fields(settings: Any, values: Mapping[str, Any]) -> None:
    """Raise ValueError for a name that is no field of a configuration; suggest the nearest one."""
    known = [field.name for field in fields(settings)]
    kind = getattr(settings, "_kind", Settings._kind)
    for name in values:
        if name not in known:
            raise ValueError(unknown_name(kind, name, known))


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """Return one line that says that a name is unknown and which one is probably meant."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(known)}"
    return f"unknown {kind} {name!r}; {hint}"
