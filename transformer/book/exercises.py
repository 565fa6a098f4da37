"""Checks for exercises: they say what is wrong, and where, and what the usual cause is.

An answer that is not written yet passes in silence, so that a notebook with open exercises still
runs from top to bottom. A wrong answer raises :class:`WrongAnswer`, whose message is all that a
notebook shows of it.

Paper: not in the paper: lets a reader work without a teacher
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor


class WrongAnswer(AssertionError):
    """An answer to an exercise is not right yet; the message says how.

    Paper: not in the paper: lets a reader work without a teacher
    """

    def _render_traceback_(self) -> list[str]:
        # IPython shows this in place of the traceback: the fault is in the answer, not in here.
        return [f"✗ {self}"]


def check(
    answer: object,
    expected: object,
    name: str = "your answer",
    tolerance: int | float = 1e-5,
    mistakes: Mapping[str, object] | None = None,
) -> None:
    """Check a value and print that it is right, or raise and say what is wrong.

    Args:
        answer: a tensor, array, number, truth value or string; None or ``...`` if it is open.
        expected: the right answer.
        name: what to call the answer in messages.
        tolerance: greatest difference that still counts as equal.
        mistakes: well-known wrong answers, each under the hint to give for it.

    Raises:
        WrongAnswer: if the answer is wrong.

    Paper: not in the paper: lets a reader work without a teacher
    """
    if _is_open(answer):
        print(f"○ {name}: nothing to check yet.")
        return
    fault = find_fault(answer, expected, tolerance, mistakes)
    if fault:
        raise WrongAnswer(f"{name}: {fault}")
    print(f"✓ {name}: right.")


def check_function(
    function: Callable,
    reference: Callable,
    cases: Sequence[tuple],
    name: str | None = None,
    tolerance: int | float = 1e-5,
    mistakes: Mapping[str, Callable] | None = None,
) -> None:
    """Check a function against one that is known to be right, on every case.

    Args:
        function: the answer; open as long as it returns None.
        reference: gives the right result for the same arguments.
        cases: the arguments of each call.
        name: what to call the function in messages; its own name if None.
        tolerance: greatest difference that still counts as equal.
        mistakes: functions that are wrong in a well-known way, each under the hint to give for it.

    Raises:
        WrongAnswer: if a result is wrong, if the function raises, or if it changes its arguments.

    Paper: not in the paper: lets a reader work without a teacher
    """
    name = name or function.__name__
    for number, case in enumerate(cases, 1):
        where = f"{name}, case {number} of {len(cases)}"
        given = [_copy(argument) for argument in case]
        try:
            answer = function(*given)
        except Exception as error:
            raise WrongAnswer(f"{where}: it raised {type(error).__name__}: {error}") from error
        if _is_open(answer):
            print(f"○ {name}: nothing to check yet.")
            return
        if not all(_same(argument, copy) for argument, copy in zip(case, given, strict=True)):
            raise WrongAnswer(f"{where}: it changes its arguments in place. Make a new tensor.")
        known = {hint: wrong(*case) for hint, wrong in (mistakes or {}).items()}
        fault = find_fault(answer, reference(*case), tolerance, known)
        if fault:
            raise WrongAnswer(f"{where}: {fault}")
    print(f"✓ {name}: right in all {len(cases)} cases.")


def find_fault(
    answer: object,
    expected: object,
    tolerance: int | float = 1e-5,
    mistakes: Mapping[str, object] | None = None,
) -> str | None:
    """Say in a sentence or two what is wrong with an answer.

    Args:
        answer: what came.
        expected: what is right.
        tolerance: greatest difference that still counts as equal.
        mistakes: well-known wrong answers, each under the hint to give for it.

    Returns:
        The fault, or None if there is none.

    Paper: not in the paper: lets a reader work without a teacher
    """
    if isinstance(expected, str | bool):
        if type(answer) is not type(expected):
            return f"expected a {type(expected).__name__}, got {answer!r}."
        return None if answer == expected else _hint(answer, mistakes, 0.0) or f"not {answer!r}."
    if not isinstance(answer, Tensor | np.ndarray | int | float | list | tuple):
        return f"expected numbers, got {type(answer).__name__}."
    got, right = torch.as_tensor(answer), torch.as_tensor(expected)
    return (
        _shape_fault(got, right)
        or _type_fault(got, right)
        or _value_fault(got, right, tolerance, mistakes)
    )


def _shape_fault(got: Tensor, right: Tensor) -> str | None:
    if got.shape == right.shape:
        return None
    fault = f"the shape is {tuple(got.shape)}, expected {tuple(right.shape)}."
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
        return hint or f"{got.item():.4g} is too {'large' if got > right else 'small'}."
    fault = _first_difference(got, right, tolerance)
    return f"{fault} {hint or _weights_hint(got, right)}".rstrip()


def _first_difference(got: Tensor, right: Tensor, tolerance: int | float) -> str:
    wrong = ~torch.isclose(got, right, rtol=tolerance, atol=tolerance, equal_nan=True)
    place = wrong.nonzero()[0].tolist()
    return (
        f"{int(wrong.sum())} of {wrong.numel()} values differ, first at {place}: "
        f"{got[tuple(place)].item():.4g}, expected {right[tuple(place)].item():.4g}."
    )


def _weights_hint(got: Tensor, right: Tensor) -> str:
    """If the right answer is a set of attention weights, say what keeps this one from being so."""
    one = torch.ones((), dtype=torch.double)
    if right.min() < 0 or not torch.allclose(right.sum(-1), one, atol=1e-4):
        return ""
    if got.min() < 0:
        return "A weight is negative: is a softmax missing?"
    if torch.allclose(got.sum(-1), one, atol=1e-4):
        return ""
    return (
        f"Your rows do not sum to 1 (the first sums to {got.sum(-1).flatten()[0]:.4g}): "
        "is the softmax taken along the keys, the last axis?"
    )


def _hint(
    answer: object, mistakes: Mapping[str, object] | None, tolerance: int | float
) -> str | None:
    for hint, wrong in (mistakes or {}).items():
        if isinstance(answer, Tensor):
            values = torch.as_tensor(wrong).double()
            if values.shape == answer.shape and torch.allclose(answer, values, atol=tolerance):
                return hint
        elif answer == wrong:
            return hint
    return None


def _is_open(answer: object) -> bool:
    return answer is None or answer is ...


def _copy(argument: object) -> object:
    return argument.clone() if isinstance(argument, Tensor) else argument


def _same(before: object, after: object) -> bool:
    return not isinstance(before, Tensor) or torch.equal(before, after)
