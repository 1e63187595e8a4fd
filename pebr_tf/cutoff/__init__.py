"""Where each list ends: policies, the level and its temperature, and the calibrated knobs."""
