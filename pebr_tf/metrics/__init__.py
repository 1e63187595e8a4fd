"""Measures of retrieval with lists of different lengths."""
