"""A toy language pair: a hundred words, and a pronoun that depends on one adjective.

    The animal didn't cross the street because it was too tired.
    Das Tier überquerte die Straße nicht, weil es zu müde war.

With *wide* for *tired*, *it* is the street, and German says *sie*. German nouns have a gender and
a case, the verb comes second whatever comes first, and the past tense has two forms that are both
right: *überquerte*, or *hat* in its place and *überquert* at the end.
"""

import random
from dataclasses import dataclass, replace
from typing import NamedTuple


class Noun(NamedTuple):
    english: str
    german: str
    gender: str


class Verb(NamedTuple):
    english: str  # after "didn't"
    past: str
    german: str  # the past in one word
    perfect: tuple[str, str]  # the past in two: after the subject, and at the end
    case: str = "accusative"  # of the object


ANIMALS = [
    *(Noun(*pair, "n") for pair in (("animal", "Tier"), ("horse", "Pferd"), ("sheep", "Schaf"))),
    *(Noun(*pair, "m") for pair in (("dog", "Hund"), ("bird", "Vogel"), ("wolf", "Wolf"))),
    *(Noun(*pair, "f") for pair in (("cat", "Katze"), ("mouse", "Maus"), ("cow", "Kuh"))),
]
PLACES = [
    *(Noun(*pair, "f") for pair in (("street", "Straße"), ("bridge", "Brücke"))),
    *(Noun(*pair, "m") for pair in (("river", "Fluss"), ("path", "Weg"))),
    *(Noun(*pair, "n") for pair in (("field", "Feld"), ("valley", "Tal"))),
]
FIND = Verb("find", "found", "fand", ("hat", "gefunden"))
SEE = Verb("see", "saw", "sah", ("hat", "gesehen"))
CATCH = Verb("catch", "caught", "fing", ("hat", "gefangen"))
FOLLOW = Verb("follow", "followed", "folgte", ("ist", "gefolgt"), "dative")
CROSS = Verb("cross", "crossed", "überquerte", ("hat", "überquert"))
REACH = Verb("reach", "reached", "erreichte", ("hat", "erreicht"))

OF_SUBJECTS = {"tired": "müde", "old": "alt", "weak": "schwach", "slow": "langsam"}
OF_OBJECTS = {"fast": "schnell", "small": "klein", "quiet": "leise"}
OF_PLACES = {"wide": "breit", "long": "lang", "dark": "dunkel"}
ADJECTIVES = OF_SUBJECTS | OF_OBJECTS | OF_PLACES
ATTRIBUTES = {"black": "schwarze", "white": "weiße", "brown": "braune", "young": "junge"}
ADVERBS = {"yesterday": "gestern", "today": "heute"}

ARTICLES = {  # and relative pronouns
    "nominative": {"m": "der", "f": "die", "n": "das"},
    "accusative": {"m": "den", "f": "die", "n": "das"},
    "dative": {"m": "dem", "f": "der", "n": "dem"},
}
PRONOUNS = {"m": "er", "f": "sie", "n": "es"}


@dataclass(frozen=True)
class Phrase:
    """A noun with its article, perhaps an attribute or a relative clause."""

    noun: Noun
    attribute: str = ""
    clause: tuple[Verb, Noun, bool] | None = (
        None  # True: "that saw the cat", not "that the cat saw"
    )

    def english(self) -> str:
        phrase = f"the {self.attribute} {self.noun.english}"
        if self.clause:
            verb, other, acts = self.clause
            words = (verb.past, f"the {other.english}")
            phrase += " that " + " ".join(words if acts else words[::-1])
        return phrase

    def german(self, case: str) -> str:
        article, attribute = (
            ARTICLES[case][self.noun.gender],
            ATTRIBUTES.get(self.attribute, ""),
        )
        if attribute and (case == "dative" or article == "den"):
            attribute += "n"
        phrase = f"{article} {attribute} {self.noun.german}"
        if self.clause:
            verb, other, acts = self.clause
            own, others = ("nominative", verb.case) if acts else (verb.case, "nominative")
            pronoun = ARTICLES[own][self.noun.gender]
            phrase += f", {pronoun} {Phrase(other).german(others)} {verb.german},"
        return phrase


@dataclass(frozen=True)
class Sentence:
    """A subject, a verb and an object, and why or in spite of what."""

    subject: Phrase
    verb: Verb
    object: Phrase
    adjective: str
    negated: bool = True  # "didn't ... because it was too", not "... although it was very"
    clause_first: bool = False
    adverb: str = ""
    adverb_first: bool = False

    @property
    def meant(self) -> Noun:
        """What *it* stands for."""
        return (self.subject if self.adjective in OF_SUBJECTS else self.object).noun

    @property
    def english(self) -> str:
        verb = f"didn't {self.verb.english}" if self.negated else self.verb.past
        main = f"{self.subject.english()} {verb} {self.object.english()}"
        main = f"{self.adverb} {main}" if self.adverb_first else f"{main} {self.adverb}"
        clause = "because it was too" if self.negated else "although it was very"
        clause = f"{clause} {self.adjective}"
        return join(f"{clause}, {main}." if self.clause_first else f"{main} {clause}.")

    def german(self, perfect: bool = False) -> str:
        """Translate, with the past in one word or in two."""
        verb, last = self.verb.perfect if perfect else (self.verb.german, "")
        subject, case = self.subject.german("nominative"), self.verb.case
        adverb = ADVERBS.get(self.adverb, "")
        first, middle = (adverb, "") if self.adverb_first else ("", adverb)
        start = f"{verb} {subject}" if first or self.clause_first else f"{subject} {verb}"
        nicht = "nicht" if self.negated else ""
        main = f"{first} {start} {self.object.german(case)} {middle} {nicht} {last}"
        word, degree = ("weil", "zu") if self.negated else ("obwohl", "sehr")
        pronoun = PRONOUNS[self.meant.gender]
        clause = f"{word} {pronoun} {degree} {ADJECTIVES[self.adjective]} war"
        return join(f"{clause}, {main}." if self.clause_first else f"{main}, {clause}.")

    def is_right(self, german: str) -> bool:
        """Whether a translation is one of the two."""
        return german in (self.german(), self.german(perfect=True))


TIRED = Sentence(Phrase(ANIMALS[0]), CROSS, Phrase(PLACES[0]), "tired")
WIDE = replace(TIRED, adjective="wide")


def draw(rng: random.Random) -> Sentence:
    """Draw a sentence."""
    subject = rng.choice(ANIMALS)
    others = [noun for noun in ANIMALS if noun is not subject]
    if rng.random() < 0.5:
        verb, noun = rng.choice([CROSS, REACH, SEE, FIND]), rng.choice(PLACES)
        adjective = rng.choice(list(rng.choice([OF_SUBJECTS, OF_PLACES])))
    else:
        verb, noun = rng.choice([CATCH, FOLLOW, SEE, FIND]), rng.choice(others)
        adjective = rng.choice(list(rng.choice([OF_SUBJECTS, OF_OBJECTS])))
        others.remove(noun)
    clause, adverb, attributes = None, "", ["", ""]
    if rng.random() < 0.3:
        clause = (rng.choice([SEE, FIND]), rng.choice(others), rng.random() < 0.5)
    for place, of in enumerate((subject, noun)):
        if of in ANIMALS and not clause and rng.random() < 0.4:
            attributes[place] = rng.choice(list(ATTRIBUTES))
    if rng.random() < 0.4:
        adverb = rng.choice(list(ADVERBS))
    clause_first = rng.random() < 0.35
    adverb_first = adverb != "" and not clause_first and rng.random() < 0.6
    subjects, objects = Phrase(subject, attributes[0], clause), Phrase(noun, attributes[1])
    negated = rng.random() < 0.6
    return Sentence(subjects, verb, objects, adjective, negated, clause_first, adverb, adverb_first)


def corpus(
    training: int = 12_000, test: int = 300, seed: int = 0
) -> tuple[list[tuple[str, str]], list[Sentence]]:
    """Return pairs to train on, and sentences to test on whose key combinations are new.

    A quarter of the combinations of subject, object and adjective occurs only in the test, the
    book's two among them.
    """
    rng = random.Random(seed)

    def key(sentence: Sentence) -> tuple[Noun, Noun, str]:
        return sentence.subject.noun, sentence.object.noun, sentence.adjective

    keys = sorted({key(draw(rng)) for _ in range(20_000)})
    held_out = {key(TIRED), key(WIDE), *rng.sample(keys, len(keys) // 4)}
    pairs: dict[str, str] = {}
    sentences: dict[str, Sentence] = {}
    while len(pairs) < training or len(sentences) < test:
        sentence = draw(rng)
        if key(sentence) not in held_out:
            pairs.setdefault(sentence.english, sentence.german(perfect=rng.random() < 0.5))
        elif len(sentences) < test:
            sentences[sentence.english] = sentence
    return list(pairs.items())[:training], list(sentences.values())


def join(words: str) -> str:
    """Write a sentence with single blanks, no blank before a comma, and a capital."""
    line = " ".join(words.split()).replace(" ,", ",").replace(",,", ",").replace(" .", ".")
    return line[:1].upper() + line[1:]


def split(line: str) -> list[str]:
    """Split a sentence into words and marks; the first word loses its capital."""
    first, *rest = line.replace(",", " ,").replace(".", " .").split()
    return [first.lower(), *rest]


def _words() -> list[str]:
    """Every word of both languages, once, after padding, beginning and end."""
    words = {
        *split("The that didn't because although it was too very weil obwohl zu sehr war nicht, .")
    }
    for noun in ANIMALS + PLACES:
        words |= {noun.english, noun.german}
    for verb in (FIND, SEE, CATCH, FOLLOW, CROSS, REACH):
        words |= {verb.english, verb.past, verb.german, *verb.perfect}
    for pairs in (ADJECTIVES, ATTRIBUTES, ADVERBS):
        words |= {*pairs, *pairs.values()}
    words |= {german + "n" for german in ATTRIBUTES.values()} | {*PRONOUNS.values()}
    words |= {article for case in ARTICLES.values() for article in case.values()}
    return ["<pad>", "<bos>", "<eos>", *sorted(words)]


WORDS = _words()
IDS = {word: number for number, word in enumerate(WORDS)}


def encode(line: str) -> list[int]:
    """Return the numbers of a sentence's words and of the end.

    Raises:
        ValueError: if the toy doesn't know a word, or there is none.
    """
    words = split(line) if line.strip() else []
    unknown = [word for word in words if word not in IDS]
    if unknown or not words:
        problem = f"doesn't know {', '.join(map(repr, unknown))}" if unknown else "needs a sentence"
        raise ValueError(f"the toy {problem}; its words: {' '.join(sorted(WORDS[3:]))}")
    return [*map(IDS.__getitem__, words), IDS["<eos>"]]


def decode(ids: list[int]) -> str:
    """Return the sentence that numbers stand for."""
    return join(" ".join(WORDS[number] for number in ids))
