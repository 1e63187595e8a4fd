"""The retrieval benchmark: range search against other ways to search."""
