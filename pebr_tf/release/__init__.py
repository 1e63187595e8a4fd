"""What leaves a run: one typed class per artifact, which owns its file names and JSON keys."""
