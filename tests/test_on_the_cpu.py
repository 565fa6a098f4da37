"""On a machine with a GPU, the tests run on the CPU, those of fixtures with a wider scope too."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

# A PyTorch that has found a GPU, as far as it can be asked; using it fails.
GPU = "import sys, pytest, torch; torch.cuda.is_available = lambda: True; "
RUN = "sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', *sys.argv[1:]]))"


def test_a_fixture_of_a_module_trains_on_the_cpu():
    environment = {n: v for n, v in os.environ.items() if n != "ACCELERATE_USE_CPU"}
    test = "tests/training/test_resume.py::test_a_finished_run_has_nothing_left_to_do"
    done = subprocess.run(
        [sys.executable, "-c", GPU + RUN, test],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    assert "1 passed" in done.stdout
