"""Settings for every test: one thread, the CPU, no display, shapes checked at run time."""

import os
import sys
from contextlib import contextmanager

# Before torch and matplotlib are imported: both read these once.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["MPLBACKEND"] = "agg"
# Bit-equality is a promise about the CPU. Fixtures of a module or a session train, too.
os.environ["ACCELERATE_USE_CPU"] = "true"

import pytest
from jaxtyping import install_import_hook

# The hook only sees modules that are imported after it.
assert "transformer" not in sys.modules, "transformer was imported before its shapes were checked"
install_import_hook(["transformer", "transformer_book"], "beartype.beartype")

import torch
from hypothesis import settings

# The first example pays for imports and compiled checks: a deadline would only measure those.
settings.register_profile("no deadline", deadline=None, max_examples=40)
settings.load_profile("no deadline")

torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def no_gpu():
    """Let nothing choose a GPU by itself. The tests that need one have been collected by now."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "is_available", lambda: False)
        yield patch


@pytest.fixture
def gpu(no_gpu, monkeypatch):
    """Let this test use the GPU of the machine."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setenv("ACCELERATE_USE_CPU", "false")


@pytest.fixture(scope="module")
def unchecked():
    """Check no shapes in a module: for long loops, and for what a reader's own program does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jaxtyping.config.jaxtyping_disable", True)
        yield


@pytest.fixture
def limit_file_size():
    """``with limit_file_size(bytes):`` is like a full disk, and needs no privileges."""
    resource = pytest.importorskip("resource")

    @contextmanager
    def limit(size):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limit
