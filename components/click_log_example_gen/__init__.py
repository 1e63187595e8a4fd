"""Reads a click log and a catalogue into Examples: `ClickLogExampleGen`."""

from components.click_log_example_gen.component import ClickLogExampleGen

__all__ = ["ClickLogExampleGen"]
