"""The measurements of speed run on the CPU, whatever the machine has."""

import pytest
from accelerate.state import AcceleratorState


@pytest.fixture(autouse=True, scope="module")
def on_the_cpu():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACCELERATE_USE_CPU", "true")
        AcceleratorState._reset_state(reset_partial_state=True)
        yield
    AcceleratorState._reset_state(reset_partial_state=True)
