"""The file of a calibration, for readers without TensorFlow."""

import json

FILE_NAME = "cutoff.json"


def default_of(content: bytes) -> str:
    """The default knob and its value; ValueError, LookupError or TypeError if it is invalid."""
    cutoff = json.loads(content)
    return f"{cutoff['default_knob']} {cutoff['default_value']:g}"
