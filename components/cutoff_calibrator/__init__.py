"""CutoffCalibrator: tunes the cut-off on held-out clicks and completes the query model."""

from components.cutoff_calibrator.component import CutoffCalibrator

__all__ = ["CutoffCalibrator"]
