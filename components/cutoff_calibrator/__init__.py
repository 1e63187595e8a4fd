"""CutoffCalibrator: tunes the cut-off on held-out clicks and completes the query model."""
