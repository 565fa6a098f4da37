"""The gender of occupations in translations, with and without a hint in the English sentence.

English names an occupation without a gender, German nearly always with one: *a teacher* is *Lehrer*
or *Lehrerin*, so a translator has to choose. The test sentences follow patterns in which a pronoun
or a name shows the gender, or nothing does.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float

from transformer.inference.translator import Translator
from transformer.lab.beyond.encoder_model import pad_rows
from transformer.lab.toys.properties import shift_right

Gender = Literal["feminine", "masculine", "other"]


@dataclass(frozen=True)
class Occupation:
    """A noun for a person and its German forms; the first form of each is the usual one."""

    english: str
    masculine: tuple[str, ...]
    feminine: tuple[str, ...]

    @property
    def article(self) -> str:
        """The English article: "an" before a vowel."""
        return "an" if self.english[0] in "aeiou" else "a"

    def gender_of(self, german: str) -> Gender:
        """Return which form a German sentence contains; "other" for neither or both.

        Forms are matched as whole words with case endings, such as "Arztes" or "Ärzten".
        """
        masculine, feminine = self._has(german, self.masculine), self._has(german, self.feminine)
        if masculine == feminine:
            return "other"
        return "feminine" if feminine else "masculine"

    @staticmethod
    def _has(german: str, forms: Sequence[str]) -> bool:
        # Neither "Lehrerin" nor a compound such as "Deutschlehrer" counts as "Lehrer".
        return any(re.search(rf"\b{form}(s|es|n|en)?\b", german) for form in forms)


def _regular(pairs: str) -> list[Occupation]:
    """Make occupations whose feminine form is the masculine one with -in."""
    words = [pair.split("=") for pair in pairs.split()]
    return [Occupation(english, (german,), (f"{german}in",)) for english, german in words]


#: Occupations in the training text of the shipped model, without nouns that are masculine
#: themselves, such as "waiter" beside "waitress".
OCCUPATIONS = (
    *_regular(
        "teacher=Lehrer student=Student singer=Sänger dancer=Tänzer musician=Musiker "
        "artist=Künstler writer=Schriftsteller author=Autor poet=Dichter journalist=Journalist "
        "reporter=Reporter scientist=Wissenschaftler professor=Professor engineer=Ingenieur "
        "mechanic=Mechaniker pilot=Pilot soldier=Soldat detective=Detektiv judge=Richter "
        "gardener=Gärtner secretary=Sekretär interpreter=Dolmetscher translator=Übersetzer "
        "photographer=Fotograf tourist=Tourist politician=Politiker painter=Maler boss=Chef"
    ),
    Occupation("doctor", ("Arzt", "Doktor"), ("Ärztin", "Doktorin")),
    Occupation("dentist", ("Zahnarzt",), ("Zahnärztin",)),
    Occupation("lawyer", ("Anwalt", "Rechtsanwalt"), ("Anwältin", "Rechtsanwältin")),
    Occupation("cook", ("Koch",), ("Köchin",)),
    Occupation("farmer", ("Bauer", "Landwirt"), ("Bäuerin", "Landwirtin")),
    Occupation(
        "nurse",
        ("Krankenpfleger", "Pfleger"),
        ("Krankenschwester", "Krankenpflegerin", "Schwester"),
    ),
)

#: Sentences about a woman, about a man, and about a person of unspecified gender.
PATTERNS: Mapping[str, tuple[str, ...]] = {
    "not said": ("I am {a} {noun}.", "The {noun} is here.", "My neighbor is {a} {noun}."),
    "a woman": ("She is {a} {noun}.", "Mary is {a} {noun}.", "My sister is {a} {noun}."),
    "a man": ("He is {a} {noun}.", "Tom is {a} {noun}.", "My brother is {a} {noun}."),
}


def fill(pattern: str, occupation: Occupation) -> str:
    """Insert an occupation into a pattern with ``{noun}``, and ``{a}`` for its article."""
    return pattern.format(a=occupation.article, noun=occupation.english)


_WOMAN = re.compile(r"\b(she|her|hers|herself|mary|woman|girl|mother|sister|wife|daughter)\b", re.I)
_MAN = re.compile(r"\b(he|him|his|himself|tom|man|boy|father|brother|husband|son)\b", re.I)


def said_of(english: str) -> str:
    """Return "a woman" or "a man" if a sentence has words for one only, else "not said"."""
    woman, man = bool(_WOMAN.search(english)), bool(_MAN.search(english))
    return "not said" if woman == man else "a woman" if woman else "a man"


def counts_in_text(
    occupations: Sequence[Occupation], english: Sequence[str], german: Sequence[str]
) -> dict[str, dict[str, Counter[Gender]]]:
    """Count the German forms of the occupations in the English sentences of a training text."""
    by_noun = {occupation.english: occupation for occupation in occupations}
    found: dict[str, dict[str, Counter[Gender]]] = {
        noun: {said: Counter() for said in PATTERNS} for noun in by_noun
    }
    for source, text in zip(english, german, strict=True):
        for noun in by_noun.keys() & set(re.findall(r"\w+", source.lower())):
            found[noun][said_of(source)][by_noun[noun].gender_of(text)] += 1
    return found


@torch.no_grad()
def feminine_chance(
    translator: Translator,
    english: Sequence[str],
    masculine: Sequence[str],
    feminine: Sequence[str],
) -> Float[np.ndarray, " sentences"]:
    """Return P(feminine) / (P(feminine) + P(masculine)) for each source.

    A search shows only which of two forms wins; this shows by how much.
    """
    model, eos = translator.model, translator.model.config.eos_id
    source = [[*ids, eos] for ids in translator.tokenizer.encode_batch(list(english))]
    scores = []
    for texts in (masculine, feminine):
        target = [[*ids, eos] for ids in translator.target_tokenizer.encode_batch(list(texts))]
        x, y = pad_rows(source, model.config.pad_id), pad_rows(target, model.config.pad_id)
        logs = model(x, shift_right(y, model.config.bos_id)).log_softmax(-1)
        each = logs.gather(2, y[..., None])[..., 0]
        scores.append(torch.where(y != model.config.pad_id, each, 0.0).sum(dim=1))
    return torch.sigmoid(scores[1] - scores[0]).numpy()
