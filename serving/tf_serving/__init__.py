"""Query encoding by TF Serving, and the files that configure it."""
