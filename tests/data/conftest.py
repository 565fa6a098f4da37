"""Fixtures of the data tests. Nothing here needs a network or files outside the package."""

import gzip
import lzma

import pytest

from transformer.data.corpora import load_corpus


@pytest.fixture(autouse=True)
def no_data_of_the_user(monkeypatch, tmp_path):
    """A developer's own data directory, cache and proxy must not decide a test."""
    monkeypatch.delenv("TRANSFORMER_DATA_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")  # the servers of the tests are on this machine


@pytest.fixture(scope="session")
def tatoeba():
    return load_corpus("tatoeba-en-de")


@pytest.fixture
def write_lines(tmp_path):
    """Write lines to a file of the test's folder, compressed if the name ends in .gz or .xz."""

    def write(name, lines):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = "".join(f"{line}\n" for line in lines).encode()
        pack = {".gz": gzip.compress, ".xz": lzma.compress}.get(path.suffix, bytes)
        path.write_bytes(pack(data))
        return path

    return write
