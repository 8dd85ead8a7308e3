"""The benchmarks are not part of the package: they are found in the course's folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
