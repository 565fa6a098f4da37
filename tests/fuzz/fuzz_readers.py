"""Feeds the readers what no test thought of: `make fuzz`, or one of them by its name.

    python tests/fuzz/fuzz_readers.py tokenizer -max_total_time=600 -rss_limit_mb=2048

atheris changes bytes and keeps those that reach new lines of our readers. Whatever it finds, a
reader may refuse a file with an error of its own and nothing else; the input that broke it is
written beside. What it found once stands in tests/data/test_hostile_files.py for good.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["transformer.data", "transformer.model.hub",
                                         "transformer.model.weight_file",
                                         "transformer.training.checkpoint",
                                         "transformer.interop.marian_files"]):  # fmt: skip
    from transformer.data.corpora.tatoeba import read_pairs
    from transformer.data.corpora.treebank import plain, read_trees
    from transformer.data.lines import read_lines
    from transformer.data.packed import unpack_gzip
    from transformer.data.tokenizer import Tokenizer
    from transformer.interop.marian_files import read_json
    from transformer.model.weight_file import read_weight_file
    from transformer.training.checkpoint import load_state, load_weights

from transformer.model.transformer import Transformer

FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-"))
SHIPPED = Path(sys.modules["transformer"].__file__).parent / "pretrained" / "tatoeba-en-de"


def stored(data: bytes, name: str = "input") -> Path:
    path = FOLDER / name
    path.write_bytes(data)
    return path


def tokenizer(data: bytes) -> None:
    loaded = Tokenizer.load(stored(data))
    loaded.decode(loaded.encode("Wo ist <pad> der Bahnhof?"))


def configuration(data: bytes) -> None:
    """A folder of a model whose configuration anybody may have written; it has no weights."""
    stored(data, "config.json")
    Transformer.from_pretrained(str(FOLDER))


def trees(data: bytes) -> None:
    for tree in read_trees(data.decode("utf-8", errors="replace")):
        plain(tree)


READERS: dict[str, Callable[[bytes], object]] = dict(
    tokenizer=tokenizer,
    configuration=configuration,
    trees=trees,
    weights=lambda data: read_weight_file(stored(data)),
    checkpoint=lambda data: load_weights(stored(data)),
    state=lambda data: load_state(stored(data)),
    lines=lambda data: read_lines(stored(data)),
    pairs=lambda data: read_pairs(stored(data)),
    gzip=lambda data: unpack_gzip(data, "input"),
    settings=lambda data: read_json(stored(data)),
)


def beginnings(name: str) -> list[bytes]:
    """Undamaged files to start from; without them nothing gets past the first byte."""
    import gzip as gz

    import torch
    from safetensors.torch import save

    from transformer.training.checkpoint import save_state

    if name == "tokenizer":
        small = Tokenizer.train(["der Bahnhof ist groß"] * 4, 270)
        small.save(FOLDER / "small.json")
        return [(FOLDER / "small.json").read_bytes()]
    if name == "state":
        save_state({"step": 1, "model": {"w": torch.ones(2)}}, FOLDER / "small.pt")
        return [(FOLDER / "small.pt").read_bytes()]
    weights = save({"w": torch.ones(2, 2)}, metadata={"crc32": "00000000"})
    settings = (SHIPPED / "config.json").read_bytes()
    files = dict(
        configuration=settings,
        settings=settings,
        trees=b"( (S (NP-SBJ (DT The) (NN cat)) (VP (VBD slept)) (. .)) )\n",
        weights=weights,
        checkpoint=weights,
        lines="Ein Satz.\r\nZwei\u2028Sätze.\n".encode(),
        pairs=b"Go.\tGeh.\tCC-BY\n",
        gzip=gz.compress(b"some text " * 20),
    )
    return [files[name]]


def run(name: str, options: list[str]) -> None:
    """Fuzz one reader; the process ends with an error if it breaks."""
    corpus = FOLDER / "corpus"
    corpus.mkdir()
    for number, data in enumerate(beginnings(name)):
        (corpus / str(number)).write_bytes(data)
    read = READERS[name]

    def one(data: bytes) -> None:
        with suppress(ValueError, OSError):  # of these all our errors are
            read(data)

    atheris.Setup([sys.argv[0], *options, str(corpus)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in READERS:
        sys.exit(f"usage: {sys.argv[0]} READER [libFuzzer options]; {json.dumps([*READERS])}")
    run(sys.argv[1], sys.argv[2:])
