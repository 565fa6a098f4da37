"""Settings for every test: one thread, no display, shapes checked at run time."""

import os
import sys

# Before torch and matplotlib are imported: both read these once.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["MPLBACKEND"] = "agg"

import pytest
from jaxtyping import install_import_hook

# The hook only sees modules that are imported after it.
assert "transformer" not in sys.modules, "transformer was imported before its shapes were checked"
install_import_hook("transformer", "beartype.beartype")

import torch

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def unchecked():
    """Check no shapes in a module: for long loops, and for what a reader's own program does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jaxtyping.config.jaxtyping_disable", True)
        yield
