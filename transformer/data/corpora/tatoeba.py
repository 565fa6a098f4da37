"""Tatoeba: short, everyday sentences and their translations, with splits that cannot leak.

English-German is part of the package. English-French has the same form, can be downloaded from
www.manythings.org/anki, and is read from a directory of the user.

Attribution: www.manythings.org/anki and tatoeba.org.
"""

from pathlib import Path

from transformer.data.corpora.family import Family
from transformer.data.corpora.local import require_file
from transformer.data.lines import read_lines
from transformer.data.parallel import Split, load_parallel_files
from transformer.data.splits import split_by_component

LICENCE = "CC BY 2.0 FR; www.manythings.org/anki and tatoeba.org"

# Language of the pair with English -> (pairs, English and other side of the challenge test set).
FILES = {
    "de": (
        "deu.txt.xz",
        "tatoeba-test-v2021-08-07.deu-eng.eng.xz",
        "tatoeba-test-v2021-08-07.deu-eng.deu.xz",
    ),
    "fr": (
        "fra.txt.gz",
        "tatoeba-test-v2021-08-07.eng-fra.eng.gz",
        "tatoeba-test-v2021-08-07.eng-fra.fra.gz",
    ),
}


def read_pairs(path: Path | str) -> Split:
    """Read an export of www.manythings.org/anki: English, tab, the other language.

    A third column, with the names of the authors in later exports, is ignored. A line with fewer
    than two is a ValueError.
    """
    columns = [line.split("\t", 2) for line in read_lines(path)]
    for number, line in enumerate(columns, start=1):
        if len(line) < 2:
            raise ValueError(f"{path}, line {number}: expected two columns with a tab between")
    return Split([line[0] for line in columns], [line[1] for line in columns])


def load_tatoeba(language: str, data_dir: Path | str | None = None) -> dict[str, Split]:
    """Load ``train``, ``validation``, ``test`` and ``challenge``, with English as the source.

    Test and validation have about 2,000 pairs each. ``challenge`` is the Tatoeba Challenge test
    set. No pair of training or validation shares a sentence with it on either side, which is
    stricter than leaving out the pairs that it contains.
    """
    folder = f"tatoeba-en-{language}"
    pairs, english, other = (require_file(name, folder, data_dir) for name in FILES[language])
    challenge = load_parallel_files(english, other)
    return split_by_component(read_pairs(pairs), keep_out=challenge) | {"challenge": challenge}


def _files(language: str) -> list[tuple[str, str]]:
    return [(f"tatoeba-en-{language}", name) for name in FILES[language]]


FAMILY = Family(load_tatoeba, LICENCE, "data directory", _files)
