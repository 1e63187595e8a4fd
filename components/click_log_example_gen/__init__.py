"""Reads a click log and a catalogue into Examples: `ClickLogExampleGen`."""
