"""Which gender a translation gives to people whose occupation the English names without one."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import yaml

Said = Literal["neither", "a woman", "a man"]

_DATA = yaml.safe_load(Path(__file__).with_suffix(".yml").read_text(encoding="utf-8"))
_REGULAR = {
    noun: (forms, [f"{form}in" for form in forms]) for noun, forms in _DATA["regular"].items()
}
#: Masculine and feminine forms by the English noun. Nouns that are also common verbs, such as
#: "cook", and nouns for one gender, such as "waitress", are left out.
OCCUPATIONS: dict[str, tuple[list[str], list[str]]] = _REGULAR | _DATA["others"]

_WOMAN = re.compile(
    r"\b(she|her|hers|herself|mary|mrs|ms|miss|woman|girl|mother|sister|wife|daughter|aunt)\b", re.I
)
_MAN = re.compile(r"\b(he|him|his|himself|tom|mr|man|boy|father|brother|husband|son|uncle)\b", re.I)


@dataclass(frozen=True)
class NamedPair:
    """A pair of sentences whose English names an occupation."""

    occupation: str
    said: Said
    english: str
    german: str

    @property
    def feminine(self) -> bool | None:
        """Whether the German has the feminine form; None if it has neither form or both."""
        return is_feminine(self.occupation, self.german)


def said_of(english: str) -> Said:
    """Return whether a sentence has a word for a woman and none for a man, or the reverse."""
    woman, man = bool(_WOMAN.search(english)), bool(_MAN.search(english))
    return "neither" if woman == man else "a woman" if woman else "a man"


def is_feminine(occupation: str, german: str) -> bool | None:
    """Return whether a German sentence has the feminine form, declined or in a compound."""
    masculine, feminine = (
        bool(re.search(rf"\b\w*({'|'.join(forms)})(s|es|n|en)?\b", german, re.I))
        for forms in OCCUPATIONS[occupation]
    )
    return None if masculine == feminine else feminine


def named_pairs(pairs: Iterable[tuple[str, str]]) -> list[NamedPair]:
    """Return the pairs of English and German whose English names exactly one occupation."""
    found = []
    for english, german in pairs:
        nouns = OCCUPATIONS.keys() & set(re.findall(r"\w+", english.lower()))
        if len(nouns) == 1:
            found.append(NamedPair(nouns.pop(), said_of(english), english, german))
    return found
