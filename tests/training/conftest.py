"""What the training tests share."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for tiny_training


@pytest.fixture(autouse=True)
def a_process_of_its_own():
    """Let each test choose its device and its processes anew."""
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)
    yield
    AcceleratorState._reset_state(reset_partial_state=True)


@pytest.fixture(autouse=True)
def half_precision_on_any_processor(monkeypatch):
    """Train in bfloat16 where it is asked for, even if it is slow."""
    from transformer.training import config

    monkeypatch.setattr(config, "multiplies_bfloat16", lambda: True)
