"""Data to learn from: synthetic click logs whose relevance is known.

Imports nothing heavy; `pebr_tf.data.synthetic` brings numpy and pyarrow.
"""
