"""Tables of users, in any of four formats, read in columns; a bad row is named, never lost."""

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
