"""Benchmarks that `pebr bench` runs."""
