"""What the agreement of versions is measured with."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for measure
