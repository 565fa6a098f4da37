"""The options of a search, checked when they are made.

Paper: section 6.1
"""

from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, Literal, TypedDict, get_args

from transformer.model.config import unknown_name

LengthPenalty = Literal["gnmt", "fairseq"]


class SearchKeywords(TypedDict, total=False):
    """The fields of :class:`SearchOptions` as keywords, and their names in Hugging Face."""

    beam_size: int
    alpha: float
    penalty: LengthPenalty
    max_length: int | None
    num_beams: int
    length_penalty: float
    max_new_tokens: int | None


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search; see :func:`~transformer.inference.decoding.beam_search`.

    Args:
        beam_size: prefixes to extend, at least 1; 1 is greedy search.
        alpha: exponent of the length penalty, -10 to 10.
        penalty: formula of the length penalty, "gnmt" or "fairseq", see
            :func:`~transformer.inference.decoding.length_penalty`.
        max_length: most tokens to produce for a sentence, including EOS; None for the number of
            its real tokens (without EOS) + 50.
        n_best: number of hypotheses per sentence, 1 to ``beam_size``; None for the best one.

    Raises:
        TypeError: if an option is not a number where it must be one.
        ValueError: if an option is out of range.

    Paper: section 6.1
    """

    beam_size: int = 4
    alpha: float = 0.6
    penalty: LengthPenalty = "gnmt"
    max_length: int | None = None
    n_best: int | None = None

    def __post_init__(self) -> None:
        for name in ("beam_size", "max_length", "n_best"):
            value = getattr(self, name)
            kinds = Integral if name == "beam_size" else Integral | None
            if isinstance(value, bool) or not isinstance(value, kinds):
                raise TypeError(f"{name} must be a whole number, got {value!r}")
        if self.beam_size < 1:
            raise ValueError(f"beam_size must be at least 1, got {self.beam_size}")
        if isinstance(self.alpha, bool) or not isinstance(self.alpha, Real):
            raise TypeError(f"alpha must be a number, got {self.alpha!r}")
        if not -10 <= self.alpha <= 10:
            raise ValueError(f"alpha must be a number from -10 to 10, got {self.alpha}")
        if self.n_best is not None and not 1 <= self.n_best <= self.beam_size:
            allowed = f"from 1 to beam_size = {self.beam_size}"
            raise ValueError(f"n_best must be {allowed}, got {self.n_best}")
        require_penalty("penalty", self.penalty)
        if self.max_length is not None and self.max_length < 1:
            raise ValueError(f"max_length must be at least 1, got {self.max_length}")

    @classmethod
    def of(cls, options: "SearchOptions | None" = None, **keywords: Any) -> "SearchOptions":
        """Make options from keywords, also under the names of Hugging Face's ``generate``.

        Those names are ``num_beams`` (beam_size), ``length_penalty`` (alpha),
        ``num_return_sequences`` (n_best) and ``max_new_tokens`` (max_length). For Hugging Face's
        length penalty, set penalty="fairseq".

        Args:
            options: the options that the keywords change; None for the defaults.
            keywords: values by option name.

        Raises:
            TypeError: if a name is unknown, an option is given under two names, or an option is
                not a number where it must be one.
            ValueError: if an option is out of range.
        """
        if not isinstance(options, cls | None):
            hint = f"; write beam_size={options}" if isinstance(options, int) else ""
            raise TypeError(f"options must be SearchOptions, got {options!r:.60}{hint}")
        known, values = [field.name for field in fields(cls)], dict[str, Any]()
        names: dict[str, str] = {}  # under which each option was given
        for given, value in keywords.items():
            name = _HUGGING_FACE.get(given, given)
            if name not in known:
                raise TypeError(unknown_name("search option", given, [*known, *_HUGGING_FACE]))
            if name in values:
                raise TypeError(f"{name} is given twice, as {names[name]} and {given}")
            values[name], names[name] = value, given
        return replace(options or cls(), **values)


# Our names by those of Hugging Face.
_HUGGING_FACE = dict(
    num_beams="beam_size",
    length_penalty="alpha",
    num_return_sequences="n_best",
    max_new_tokens="max_length",
)


def require_penalty(name: str, kind: str) -> None:
    """Refuse an unknown formula of the length penalty.

    Args:
        name: what the error calls it.
        kind: the formula's name.

    Raises:
        ValueError: if there is no such formula.
    """
    if kind not in get_args(LengthPenalty):
        raise ValueError(f"{name} must be one of {get_args(LengthPenalty)}, got {kind!r}")
