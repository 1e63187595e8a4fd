"""The evaluator is tested on what the calibrator's cases write."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "cutoff_calibrator"))
