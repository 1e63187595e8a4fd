"""Reads users' tables in four formats by column; every invalid row is reported."""

from pebr_tf.data.tables import convert
from pebr_tf.data.tables.batch import Batch, Rejected
from pebr_tf.data.tables.read import (
    Format,
    Source,
    column_names,
    format_of,
    read_table,
    require_columns,
)
