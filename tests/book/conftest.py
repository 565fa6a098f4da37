"""What the tests of the book and the tools share."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for toy_recording
