"""A mixture: the largest training text available without WMT14's four million pairs.

It contains Tatoeba's everyday sentences, Multi30K's captions and the news of 2008 to 2012, and is
tested on the paper's own test set. With little news and no parliament in training, a score on
newstest2014 shows what data of that size can do, and nothing about the architecture.
"""

from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

from transformer.data.corpora import multi30k, tatoeba, wmt
from transformer.data.corpora.family import Family
from transformer.data.corpora.local import how_to_provide
from transformer.data.parallel import Split

LICENCE = "for non-commercial research; the licences of tatoeba, multi30k and wmt-newstest together"

#: News from before newstest2013, which is for validation as in the paper.
TRAINING_NEWS = ("news-test2008", "newssyscomb2009") + tuple(
    f"newstest{y}" for y in range(2009, 2013)
)


def load_mixture(language: str, data_dir: Path | str | None = None) -> dict[str, Split]:
    """Load Tatoeba, Multi30K and the news test sets of 2008 to 2012 as one training text.

    No training pair shares its source or its target sentence with a pair of the validation set or
    of any test set: those of the mixture, and all others of Tatoeba and Multi30K. The splits are
    ``train``, shuffled; ``validation`` (newstest2013); ``test`` (newstest2014); and, for scores
    within the training domains, ``tatoeba`` and ``multi30k``, the test splits of these two.
    """
    news = wmt.load_newstest(language, data_dir)
    missing = [name for name in TRAINING_NEWS if name not in news]
    if missing:
        advice = how_to_provide(f"wmt-newstest-en-{language}")
        raise FileNotFoundError(f"cannot find {', '.join(missing)}; {advice}")
    everyday = tatoeba.load_tatoeba(language, data_dir)
    captions = multi30k.load_multi30k("en", language, data_dir)
    held_out = {
        "validation": news["validation"],
        "test": news["test"],
        "tatoeba": everyday["test"],
        "multi30k": captions["test"],
    }
    # Tatoeba's validation pairs do not validate anything here, so they may train.
    train = [everyday["train"], everyday["validation"], captions["train"]]
    train += [news[name] for name in TRAINING_NEWS]
    others = [everyday["challenge"], *(captions[name] for name in captions if name != "train")]
    return {"train": _mixed(train, [*held_out.values(), *others])} | held_out


def _mixed(parts: Iterable[Split], keep_out: Iterable[Split]) -> Split:
    """Return all pairs that share no sentence with ``keep_out``, ordered by a hash."""
    keep_out = list(keep_out)
    known_source = {sentence for split in keep_out for sentence in split.source}
    known_target = {sentence for split in keep_out for sentence in split.target}
    pairs = [
        pair
        for part in parts
        for pair in part
        if pair[0] not in known_source and pair[1] not in known_target
    ]
    # As in transformer.data.splits, a hash shuffles equally on every machine.
    pairs.sort(key=lambda pair: blake2b("\t".join(pair).encode(), digest_size=8).digest())
    return Split.of(pairs)


def _files(language: str) -> list[tuple[str, str]]:
    parts = (tatoeba.FAMILY, multi30k.FAMILY, wmt.NEWSTEST)
    found = [file for part in parts for file in part.files(language)]
    return found + wmt.files("wmt-newstest", TRAINING_NEWS, language)


FAMILY = Family(load_mixture, LICENCE, "tatoeba, multi30k and wmt-newstest", _files)
