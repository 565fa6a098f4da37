"""The options of a search, checked when they are made."""

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypedDict, get_args

from transformer.settings import Settings, number, unknown_name, whole

LengthPenalty = Literal["gnmt", "fairseq"]


# Our names by those of Hugging Face.
HUGGING_FACE = dict(
    num_beams="beam_size",
    length_penalty="alpha",
    num_return_sequences="n_best",
    max_new_tokens="max_length",
)


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
class SearchOptions(Settings):
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
        TypeError: if there is no such option.
        ValueError: if an option is out of range, or not a number where it must be one.

    Paper: section 6.1
    """

    beam_size: int = 4
    alpha: float = 0.6
    penalty: LengthPenalty = "gnmt"
    max_length: int | None = None
    n_best: int | None = None

    _kind = "search option"
    _numbers = dict(
        beam_size=whole(1, 10_000),
        alpha=number("number from -10 to 10", lambda x: -10 <= x <= 10),
        max_length=whole(1, 1_000_000),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_best is not None and self.n_best > self.beam_size:
            allowed = f"from 1 to beam_size = {self.beam_size}"
            raise ValueError(f"n_best must be {allowed}, got {self.n_best}")

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
            TypeError: if a name is unknown, or an option is given under two names.
            ValueError: if an option is out of range.
        """
        if not isinstance(options, cls | None):
            hint = f"; write beam_size={options}" if isinstance(options, int) else ""
            raise TypeError(f"options must be SearchOptions, got {options!r:.60}{hint}")
        known, values = [field.name for field in fields(cls)], dict[str, Any]()
        names: dict[str, str] = {}  # under which each option was given
        for given, value in keywords.items():
            name = HUGGING_FACE.get(given, given)
            if name not in known:
                raise TypeError(unknown_name("search option", given, [*known, *HUGGING_FACE]))
            if name in values:
                raise TypeError(f"{name} is given twice, as {names[name]} and {given}")
            values[name], names[name] = value, given
        return replace(options or cls(), **values)


def require_penalty(name: str, kind: str) -> None:
    """Raise ValueError if there is no such formula of the length penalty."""
    if kind not in get_args(LengthPenalty):
        raise ValueError(f"{name} must be one of {get_args(LengthPenalty)}, got {kind!r}")
