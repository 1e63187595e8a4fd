"""Policies: the rules that end lists. See `base` for what they have in common."""
