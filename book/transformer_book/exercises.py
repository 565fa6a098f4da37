"""Check answers to exercises, and say what is wrong, where, and what the usual cause is.

An open exercise passes, so that a notebook runs from top to bottom. A wrong answer raises
:class:`WrongAnswer`; a notebook shows only its message. Where the answer is a number, a word or a
truth value, the stored output of the open exercise holds all that the book's page needs to check an
answer in the same way.
"""

import base64
import copy
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transformer_book.skipped_cells import running_shell

#: What a wrong answer says by itself; the book's pages read these sentences as well.
HINTS: dict[str, Any] = {
    "sign": "Its sign is wrong, too.",
    "zero": "Is a 0 right here?",
    "not zero": "What cancels?",
    # The largest distance of the ratio from 1, and what it says.
    "close": (
        (0.02, "Very close: was something rounded on the way?"),
        (0.15, "Close: is a small part missing, or counted twice?"),
    ),
    "tenfold": "The size is about right: is a factor missing, or one too many?",
    "far": "It is off by more than a factor of ten: what is counted, and in which unit?",
    "truth": "Go through it step by step, and say at each what must hold.",
    "word": "Which words does the question offer?",
}


class WrongAnswer(AssertionError):
    """An answer to an exercise is wrong; the message says how."""

    def _render_traceback_(self) -> list[str]:
        # IPython shows this in place of the traceback, which would point into this module.
        return [f"✗ {self}"]


def check(
    answer: object,
    expected: object,
    name: str = "your answer",
    tolerance: int | float = 1e-5,  # absolute or relative
    mistakes: Mapping[str, object] | None = None,  # well-known wrong answers by their hints
) -> None:
    """Check a value, open if None or ``...``: print that it is right, or raise WrongAnswer."""
    if _is_open(answer):
        _show_open(name, forms(name, expected, tolerance, mistakes))
        return
    fault = find_fault(answer, expected, tolerance, mistakes)
    if fault:
        raise WrongAnswer(f"{name}: {fault}")
    print(f"✓ {name}: right.")


def check_function(
    function: object,
    reference: Callable[..., Any],
    cases: Sequence[tuple[Any, ...]],
    name: str | None = None,
    tolerance: int | float = 1e-5,
    mistakes: Mapping[str, Callable[..., Any]] | None = None,
) -> None:
    """Check a function, open while it returns None, against a reference on every case."""
    name = name or getattr(function, "__name__", "your function")
    if _is_open(function):
        print(f"○ {name}: nothing to check yet.")
        return
    if not callable(function):
        raise WrongAnswer(f"{name}: expected a function, got {_short(function)}.")
    for number, case in enumerate(cases, 1):
        where = f"{name}, case {number} of {len(cases)}"
        called = f"Called with: {', '.join(_short(argument) for argument in case)}."
        given = [_copy(argument) for argument in case]
        try:
            answer = function(*given)
        except Exception as error:
            fault = f"it raised {type(error).__name__}: {str(error).rstrip('.')}."
            raise WrongAnswer(f"{where}: {fault} {called}") from error
        if _is_open(answer) and number > 1:
            raise WrongAnswer(f"{where}: it returns nothing. Is a return missing? {called}")
        if _is_open(answer):
            print(f"○ {name}: nothing to check yet.")
            return
        if not all(_same(before, after) for before, after in zip(case, given, strict=True)):
            raise WrongAnswer(f"{where}: it changes its arguments in place. Make a new one.")
        known = {hint: wrong(*case) for hint, wrong in (mistakes or {}).items()}
        found = find_fault(answer, reference(*case), tolerance, known)
        if found:
            raise WrongAnswer(f"{where}: {found} {called}")
    where = {1: "", 2: " in both cases"}.get(len(cases), f" in all {len(cases)} cases")
    print(f"✓ {name}: right{where}.")


def forms(
    name: str,
    expected: object,
    tolerance: int | float = 1e-5,
    mistakes: Mapping[str, object] | None = None,
) -> list[dict[str, Any]]:
    """Describe the fields of a check: one, or one per judgement of a list of truth values."""
    if isinstance(expected, Tensor) and expected.dtype == torch.bool and expected.ndim == 1:
        every = enumerate(expected.tolist(), 1)
        return [made for i, truth in every if (made := form(f"statement {i}", truth)) is not None]
    made = form(name, expected, tolerance, mistakes)
    return [] if made is None else [made]


def form(
    name: str,
    expected: object,
    tolerance: int | float = 1e-5,
    mistakes: Mapping[str, object] | None = None,
) -> dict[str, Any] | None:
    """Describe a check for the book's page, whose script repeats it; None if it cannot."""
    if isinstance(expected, np.generic) or (isinstance(expected, Tensor) and expected.ndim == 0):
        expected = expected.item()
    if not isinstance(expected, str | bool | int | float):
        return None
    known = [[hint, wrong] for hint, wrong in (mistakes or {}).items()]
    kind = "word" if isinstance(expected, str) else "number"
    choices: list[str] = []
    if isinstance(expected, str):
        choices = sorted({expected, *(wrong for _, wrong in known if isinstance(wrong, str))})
    if isinstance(expected, bool):
        kind, choices = "truth", ["False", "True"]
        expected, known = str(expected), [[hint, str(wrong)] for hint, wrong in known]
    secret = json.dumps([expected, tolerance, known], ensure_ascii=False, default=float)
    # Encoded, so that a glance at the page's source does not give it away.
    key = base64.b64encode(secret.encode()[::-1]).decode()
    return dict(name=name, kind=kind, choices=choices, key=key)


def _show_open(name: str, fields: list[dict[str, Any]]) -> None:
    """Say that an exercise is open; a notebook stores the fields of its page beside it."""
    message, shell = f"○ {name}: nothing to check yet.", running_shell()
    if shell is None or not fields:
        print(message)
    else:
        shell.display_pub.publish({"text/plain": message}, metadata={"exercise": fields})


def find_fault(
    answer: object,
    expected: object,
    tolerance: int | float = 1e-5,
    mistakes: Mapping[str, object] | None = None,
) -> str | None:
    """Describe in a sentence or two what is wrong with an answer; None if nothing is."""
    if isinstance(answer, np.generic) or (isinstance(answer, Tensor) and answer.ndim == 0):
        answer = answer.item()  # a number or a truth value like any other
    if isinstance(expected, str | bool):
        return _choice_fault(answer, expected, mistakes or {})
    if not isinstance(answer, Tensor | np.ndarray | int | float | list | tuple):
        return f"expected numbers, got {type(answer).__name__}."
    right = torch.as_tensor(expected)
    try:
        got = torch.as_tensor(answer)
    except (RuntimeError, TypeError, ValueError):
        return f"expected numbers, all rows equally long, got {_short(answer)}."
    return (
        _shape_fault(got, right, _hint(got, mistakes, tolerance))
        or _type_fault(got, right)
        or _value_fault(got, right, tolerance, mistakes)
    )


def _choice_fault(
    answer: object, expected: str | bool, mistakes: Mapping[str, object]
) -> str | None:
    """Find the fault of a word or a truth value."""
    if type(answer) is not type(expected):
        kind = "a string" if isinstance(expected, str) else "True or False"
        return f"expected {kind}, got {_short(answer)}."
    if _plain(answer) == _plain(expected):
        return None
    for hint, wrong in mistakes.items():
        if _plain(answer) == _plain(wrong):
            return f"not {answer!r}. {hint}"
    if isinstance(expected, bool):
        return f"not {answer!r}. {HINTS['truth']}"
    choices = {expected, *(wrong for wrong in mistakes.values() if isinstance(wrong, str))}
    if len(choices) == 1:  # naming the right one alone would give it away
        return f"not {_short(answer)}. {HINTS['word']}"
    return f"not {_short(answer)}. Choose one of: {', '.join(map(repr, sorted(choices)))}."


def _plain(answer: object) -> object:
    """Ignore case and blanks around a word."""
    return answer.strip().lower() if isinstance(answer, str) else answer


def _shape_fault(got: Tensor, right: Tensor, hint: str | None) -> str | None:
    if got.shape == right.shape:
        return None
    if right.ndim == 0:
        return f"expected a single number, got the shape {tuple(got.shape)}. {hint or ''}".rstrip()
    fault = f"the shape is {tuple(got.shape)}, expected {tuple(right.shape)}."
    if hint:
        return f"{fault} {hint}"
    if got.ndim >= 2 and got.transpose(-2, -1).shape == right.shape:
        return fault + " Are the last two axes the wrong way round?"
    if got.squeeze().shape == right.squeeze().shape:
        return fault + " An axis of size 1 is missing or left over."
    return fault


def _type_fault(got: Tensor, right: Tensor) -> str | None:
    kinds = ["truth values" if t.dtype == torch.bool else "numbers" for t in (got, right)]
    return None if kinds[0] == kinds[1] else f"expected {kinds[1]}, got {kinds[0]} ({got.dtype})."


def _value_fault(
    got: Tensor, right: Tensor, tolerance: int | float, mistakes: Mapping[str, object] | None
) -> str | None:
    got, right = got.double(), right.double()
    if torch.allclose(got, right, rtol=tolerance, atol=tolerance, equal_nan=True):
        return None
    hint = _hint(got, mistakes, tolerance)
    if got.isnan().any() and not right.isnan().any():
        return f"it holds NaN. {hint or 'Is there a softmax over nothing, or 0 / 0?'}"
    if got.ndim == 0:
        size = f"{got.item():.6g} is too {'large' if got > right else 'small'}."
        return f"{size} {hint or _size_hint(got.item(), right.item())}"
    fault = _first_difference(got, right, tolerance)
    return f"{fault} {hint or _weights_hint(got, right) or _pattern_hint(got, right)}"


def _first_difference(got: Tensor, right: Tensor, tolerance: int | float) -> str:
    wrong = ~torch.isclose(got, right, rtol=tolerance, atol=tolerance, equal_nan=True)
    place = wrong.nonzero()[0].tolist()
    return (
        f"{int(wrong.sum())} of {wrong.numel()} values differ, first at {place}: "
        f"{got[tuple(place)].item():.4g}, expected {right[tuple(place)].item():.4g}."
    )


def _weights_hint(got: Tensor, right: Tensor) -> str:
    """Say why an answer cannot be attention weights, if the right one is."""
    one = torch.ones((), dtype=torch.double)
    if right.min() < 0 or right.max() == 1 or not torch.allclose(right.sum(-1), one, atol=1e-4):
        return ""
    if got.min() < 0:
        return "A weight is negative: is a softmax missing?"
    if torch.allclose(got.sum(-1), one, atol=1e-4):
        return ""
    return (
        f"Your rows do not sum to 1 (the first sums to {got.sum(-1).flatten()[0]:.4g}): "
        "is the softmax taken along the keys, the last axis?"
    )


def _size_hint(got: float, right: float) -> str:
    """Say how far off a number is without giving it away."""
    if got * right < 0:
        return str(HINTS["sign"])
    if not got * right:
        return str(HINTS["zero" if got == 0 else "not zero"])
    ratio = got / right
    for distance, hint in HINTS["close"]:
        if abs(ratio - 1) < distance:
            return str(hint)
    return str(HINTS["tenfold" if 0.1 < ratio < 10 else "far"])


def _pattern_hint(got: Tensor, right: Tensor) -> str:
    """Say what all the wrong values have in common."""
    alike: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-6}
    truths = bool(((right == 0) | (right == 1)).all() and ((got == 0) | (got == 1)).all())
    if truths and torch.equal(got, 1 - right):
        return "True and False are the wrong way round."
    if not truths and torch.allclose(got, -right, **alike):
        return "All signs are wrong."
    if not got.any():
        return "It is zero everywhere: was the result thrown away?"
    if got.ndim >= 2 and got.shape == got.mT.shape and torch.allclose(got.mT, right, **alike):
        return "Rows and columns are the wrong way round."
    there = right != 0
    ratio = got[there] / right[there]
    if ratio.numel() > 1 and torch.allclose(got, right * ratio[0], **alike):
        return f"All values are {ratio[0].item():.3g} times the right ones: a factor is wrong."
    if torch.allclose(got - right, (got - right).flatten()[0], **alike):
        return "All values are off by the same amount: a term is missing, or one too many."
    if torch.allclose(got.flatten().sort().values, right.flatten().sort().values, **alike):
        return "The values are right, their places are not: along which axis do you go?"
    return "Take a small case and work it out by hand, step by step."


def _hint(
    answer: Tensor, mistakes: Mapping[str, object] | None, tolerance: int | float
) -> str | None:
    for hint, wrong in (mistakes or {}).items():
        values = torch.as_tensor(wrong).double()
        if values.shape == answer.shape and torch.allclose(
            answer.double(), values, atol=tolerance, equal_nan=True
        ):
            return hint
    return None


def _is_open(answer: object) -> bool:
    return answer is None or answer is ...


def _copy(argument: object) -> object:
    if isinstance(argument, Tensor):
        return argument.clone()
    return copy.deepcopy(argument) if isinstance(argument, np.ndarray | list | set) else argument


def _same(before: Any, after: Any) -> bool:
    if isinstance(before, Tensor):
        return isinstance(after, Tensor) and torch.equal(before, after)
    if isinstance(before, np.ndarray):
        return np.array_equal(before, after)
    if isinstance(before, list):
        return len(before) == len(after) and all(map(_same, before, after))
    return not isinstance(before, set | str | bytes | int | float) or before == after


def _short(value: object, longest: int = 60) -> str:
    """Describe a value: small ones in full, large ones by their shape."""
    if isinstance(value, Tensor | np.ndarray):
        values = torch.as_tensor(value)
        if values.ndim > 1 or values.numel() > 6:
            return f"a tensor of shape {tuple(values.shape)}"
        each = [round(v, 4) if isinstance(v, float) else v for v in values.flatten().tolist()]
        return str(each if values.ndim else each[0])
    if callable(value):
        return f"a {getattr(value, '__name__', type(value).__name__)}"
    text = " ".join(repr(value).split())
    return text if len(text) <= longest else text[: longest - 1] + "…"
