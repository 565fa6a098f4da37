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
    """A noun in both languages, with its gender in German: m, f or n."""

    english: str
    german: str
    gender: str


class Verb(NamedTuple):
    """A verb in both languages, with the forms that the sentences need."""

    english: str  # after "didn't"
    past: str
    german: str  # the past in one word
    perfect: tuple[str, str]  # the past in two: early, and at the end
    case: str = "accusative"  # of the object


ANIMALS = [
    Noun("animal", "Tier", "n"), Noun("horse", "Pferd", "n"), Noun("sheep", "Schaf", "n"),
    Noun("dog", "Hund", "m"), Noun("bird", "Vogel", "m"), Noun("wolf", "Wolf", "m"),
    Noun("cat", "Katze", "f"), Noun("mouse", "Maus", "f"), Noun("cow", "Kuh", "f"),
]  # fmt: skip
PLACES = [
    Noun("street", "Straße", "f"), Noun("bridge", "Brücke", "f"), Noun("river", "Fluss", "m"),
    Noun("path", "Weg", "m"), Noun("field", "Feld", "n"), Noun("valley", "Tal", "n"),
]  # fmt: skip
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
    clause: tuple[Verb, Noun, bool] | None = None  # True: "that saw X", not "that X saw"

    def english(self) -> str:
        """Write "the black dog" or "the dog that saw the cat"."""
        if not self.clause:
            return f"the {self.attribute} {self.noun.english}"
        verb, other, acts = self.clause
        words = (verb.past, f"the {other.english}")
        return f"the {self.noun.english} that " + " ".join(words if acts else words[::-1])

    def german(self, case: str) -> str:
        """Write it in a case; a relative clause stands between commas."""
        article = ARTICLES[case][self.noun.gender]
        if not self.clause:
            attribute = ATTRIBUTES.get(self.attribute, "")
            n = "n" if attribute and (case == "dative" or article == "den") else ""
            return f"{article} {attribute}{n} {self.noun.german}"
        verb, other, acts = self.clause
        own, others = ("nominative", verb.case) if acts else (verb.case, "nominative")
        clause = f"{ARTICLES[own][self.noun.gender]} {Phrase(other).german(others)} {verb.german}"
        return f"{article} {self.noun.german}, {clause},"


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
        """The English sentence."""
        return _english(self)

    def german(self, perfect: bool = False) -> str:
        """Translate, with the past in one word or in two."""
        return _german(self, perfect)

    def is_right(self, german: str) -> bool:
        """Whether a translation is one of the two."""
        return german in (self.german(), self.german(perfect=True))


def _english(s: Sentence) -> str:
    verb = f"didn't {s.verb.english}" if s.negated else s.verb.past
    main = f"{s.subject.english()} {verb} {s.object.english()}"
    main = f"{s.adverb} {main}" if s.adverb_first else f"{main} {s.adverb}"
    clause = "because it was too" if s.negated else "although it was very"
    clause = f"{clause} {s.adjective}"
    return join(f"{clause}, {main}." if s.clause_first else f"{main} {clause}.")


def _german(s: Sentence, perfect: bool) -> str:
    """Write a sentence whose main verb is second, whatever comes first."""
    verb, last = s.verb.perfect if perfect else (s.verb.german, "")
    subject, adverb = s.subject.german("nominative"), ADVERBS.get(s.adverb, "")
    first, middle = (adverb, "") if s.adverb_first else ("", adverb)
    start = f"{verb} {subject}" if first or s.clause_first else f"{subject} {verb}"
    nicht, word, degree = ("nicht", "weil", "zu") if s.negated else ("", "obwohl", "sehr")
    main = f"{first} {start} {s.object.german(s.verb.case)} {middle} {nicht} {last}"
    clause = f"{word} {PRONOUNS[s.meant.gender]} {degree} {ADJECTIVES[s.adjective]} war"
    return join(f"{clause}, {main}." if s.clause_first else f"{main}, {clause}.")


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
    clause, attributes = None, ["", ""]
    if rng.random() < 0.3:
        clause = (rng.choice([SEE, FIND]), rng.choice(others), rng.random() < 0.5)
    for place, of in enumerate((subject, noun)):
        if of in ANIMALS and not clause and rng.random() < 0.4:
            attributes[place] = rng.choice(list(ATTRIBUTES))
    adverb = rng.choice(list(ADVERBS)) if rng.random() < 0.4 else ""
    clause_first = rng.random() < 0.35
    adverb_first = adverb != "" and not clause_first and rng.random() < 0.6
    phrases = Phrase(subject, attributes[0], clause), Phrase(noun, attributes[1])
    order = rng.random() < 0.6, clause_first, adverb, adverb_first
    return Sentence(phrases[0], verb, phrases[1], adjective, *order)


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
