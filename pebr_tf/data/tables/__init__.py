"""Reads users' tables in four formats by column; every invalid row is reported."""

from pebr_tf.data.tables import convert
from pebr_tf.data.tables.batch import Batch, Rejected
from pebr_tf.data.tables.read import Source, column_names, read_table, require_columns
