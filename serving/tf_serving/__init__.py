"""Query encoding by TF Serving, what configures it, and a server that stands in for it."""
