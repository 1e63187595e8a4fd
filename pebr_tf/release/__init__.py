"""What leaves a run, one typed class each; each owns its file names and keys."""
