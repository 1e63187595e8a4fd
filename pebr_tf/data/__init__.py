"""Click logs: tables, checks and splits; synthetic logs; goodbooks-10k."""
