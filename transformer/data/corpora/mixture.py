"""A mixture: the largest training text that can be had without WMT14's four million pairs.

Tatoeba's everyday sentences, Multi30K's captions and the news of 2008 to 2012, to be tested on the
paper's own test set. A model of it reads newstest2014 with little news and no parliament behind
it, so its score there says what data of that size can do, and nothing about the architecture.
"""

from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

from transformer.data.corpora import multi30k, tatoeba, wmt
from transformer.data.corpora.local import how_to_provide
from transformer.data.parallel import Split

LICENCE = "for non-commercial research; the licences of tatoeba, multi30k and wmt-newstest together"

#: News of before newstest2013, which is for validation as in the paper.
TRAINING_NEWS = (
    "news-test2008",
    "newssyscomb2009",
    "newstest2009",
    "newstest2010",
    "newstest2011",
    "newstest2012",
)


def load_mixture(language: str, data_dir: Path | str | None = None) -> dict[str, Split]:
    """Load Tatoeba, Multi30K and the news test sets of 2008 to 2012 as one training text.

    No pair of it shares its source or its target sentence with a pair of the validation set or of
    any test set: those of the mixture, and every other one of Tatoeba and Multi30K too.

    Args:
        language: ``de`` or ``fr``, paired with English.
        data_dir: Directory of the user's own files, searched first.

    Returns:
        ``train``, in an order that mixes its sources; ``validation`` (newstest2013); ``test``
        (newstest2014, all 3,003 pairs); and, to tell how the model does on text of the kind that
        it has read, the test splits of the other two under the names ``tatoeba`` and ``multi30k``.

    Raises:
        FileNotFoundError: If a file is neither here nor to be downloaded.
        ValueError: If a file is damaged.
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
    # Tatoeba's validation pairs are held out from nothing here, so they may train.
    train = [everyday["train"], everyday["validation"], captions["train"]]
    train += [news[name] for name in TRAINING_NEWS]
    others = [everyday["challenge"], *(captions[name] for name in captions if name != "train")]
    return {"train": _mixed(train, [*held_out.values(), *others])} | held_out


def _mixed(parts: Iterable[Split], keep_out: Iterable[Split]) -> Split:
    """All pairs that share no sentence with ``keep_out``, in an order that the text decides."""
    keep_out = list(keep_out)
    known_source = {sentence for split in keep_out for sentence in split.source}
    known_target = {sentence for split in keep_out for sentence in split.target}
    pairs = [
        pair
        for part in parts
        for pair in part
        if pair[0] not in known_source and pair[1] not in known_target
    ]
    # As in transformer.data.splits: a hash shuffles the same on every machine.
    pairs.sort(key=lambda pair: blake2b("\t".join(pair).encode(), digest_size=8).digest())
    return Split([source for source, _ in pairs], [target for _, target in pairs])
