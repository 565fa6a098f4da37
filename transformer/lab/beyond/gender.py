"""Which gender a translation gives to people, where the English says it and where it does not.

English names an occupation without a gender, German nearly always with one: *a teacher* is *Lehrer*
or *Lehrerin*. So a translator has to choose. Sentences are made from patterns in which nothing
tells the gender, or a pronoun or a name does, and the form that comes out is looked up.
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

Gender = Literal["feminine", "masculine", "other"]


@dataclass(frozen=True)
class Occupation:
    """A noun for a person and its German forms; the first form of each is the usual one.

    Args:
        english: the noun, singular.
        masculine: German nouns for a man.
        feminine: German nouns for a woman.
    """

    english: str
    masculine: tuple[str, ...]
    feminine: tuple[str, ...]

    @property
    def article(self) -> str:
        """The English article, which is "an" before a vowel."""
        return "an" if self.english[0] in "aeiou" else "a"

    def gender_of(self, german: str) -> Gender:
        """Look up which form a German sentence has; "other" if none, or both.

        Forms are found as whole words with the endings of the cases, such as "Arztes" or "Ärzten".
        """
        masculine, feminine = self._has(german, self.masculine), self._has(german, self.feminine)
        if masculine == feminine:
            return "other"
        return "feminine" if feminine else "masculine"

    @staticmethod
    def _has(german: str, forms: Sequence[str]) -> bool:
        # "Lehrerin" must not count as "Lehrer", and a compound such as "Deutschlehrer" not either.
        return any(re.search(rf"\b{form}(s|es|n|en)?\b", german) for form in forms)


def _regular(pairs: str) -> list[Occupation]:
    """Occupations whose feminine form is the masculine one with -in."""
    words = [pair.split("=") for pair in pairs.split()]
    return [Occupation(english, (german,), (f"{german}in",)) for english, german in words]


#: Occupations that the training text of the shipped model names. Nouns that are themselves for men,
#: such as "waiter" beside "waitress", are left out.
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

#: Sentences that say whether a woman or a man is meant, and sentences that do not.
PATTERNS: Mapping[str, tuple[str, ...]] = {
    "not said": ("I am {a} {noun}.", "The {noun} is here.", "My neighbor is {a} {noun}."),
    "a woman": ("She is {a} {noun}.", "Mary is {a} {noun}.", "My sister is {a} {noun}."),
    "a man": ("He is {a} {noun}.", "Tom is {a} {noun}.", "My brother is {a} {noun}."),
}


def fill(pattern: str, occupation: Occupation) -> str:
    """Put an occupation into a pattern.

    Args:
        pattern: with ``{noun}``, and ``{a}`` for its article.
        occupation: what to put in.
    """
    return pattern.format(a=occupation.article, noun=occupation.english)


_WOMAN = re.compile(r"\b(she|her|hers|herself|mary|woman|girl|mother|sister|wife|daughter)\b", re.I)
_MAN = re.compile(r"\b(he|him|his|himself|tom|man|boy|father|brother|husband|son)\b", re.I)


def said_of(english: str) -> str:
    """Say what an English sentence tells about the gender of people in it.

    Returns:
        "a woman" or "a man" if there is a word for one and none for the other, else "not said".
    """
    woman, man = bool(_WOMAN.search(english)), bool(_MAN.search(english))
    return "not said" if woman == man else "a woman" if woman else "a man"


def counts_in_text(
    occupations: Sequence[Occupation], english: Sequence[str], german: Sequence[str]
) -> dict[str, dict[str, Counter[Gender]]]:
    """Count how the pairs of a training text render the occupations that their English names.

    Args:
        occupations: those to look for, as whole words in the singular.
        english: sources.
        german: their translations.

    Returns:
        For each occupation and each of the three cases of :func:`said_of`, how often each form.
    """
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
    """Ask the model how probable one translation is beside another.

    A search shows only which of two forms wins. This shows by how much.

    Args:
        translator: a Transformer with its tokenizers, in evaluation mode.
        english: sources.
        masculine: a translation of each.
        feminine: another one of each.

    Returns:
        P(feminine) / (P(feminine) + P(masculine)) for each source, from 0 to 1.
    """
    model, eos = translator.model, translator.model.config.eos_id
    source = [[*ids, eos] for ids in translator.tokenizer.encode_batch(list(english))]
    scores = []
    for texts in (masculine, feminine):
        target = [[*ids, eos] for ids in translator.target_tokenizer.encode_batch(list(texts))]
        x, y = pad_rows(source, model.config.pad_id), pad_rows(target, model.config.pad_id)
        begin = torch.full_like(y[:, :1], model.config.bos_id)
        logs = model(x, torch.cat([begin, y[:, :-1]], dim=1)).log_softmax(-1)
        each = logs.gather(2, y[..., None])[..., 0]
        scores.append(torch.where(y != model.config.pad_id, each, 0.0).sum(dim=1))
    return torch.sigmoid(scores[1] - scores[0]).numpy()
