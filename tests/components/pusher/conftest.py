"""The pusher is tested on the tiny release of the serving tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "serving"))
