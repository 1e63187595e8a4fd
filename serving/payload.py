"""What a release knows of an item beside its vector: the columns to answer with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pebr_tf.errors import UserError

ID_COLUMN = "item_id"


class Payload:
    """Rows of a catalogue, found by item id; never written to, so safe for concurrent callers."""

    def __init__(self, table: pa.Table):
        """Takes a table with the column `item_id`, and any others to give back."""
        ids = np.asarray(table.column(ID_COLUMN).to_pylist(), str)
        order = np.argsort(ids, kind="stable")
        self._ids, self._order = ids[order], order
        # In one piece, for Arrow joins the pieces of a column whenever it takes from several.
        self._table = table.drop([ID_COLUMN]).combine_chunks()

    @classmethod
    def load(cls, path: Path) -> Payload:
        """Reads a Parquet file.

        Raises:
          UserError: Not a Parquet file, or one without `item_id`.
        """
        try:
            table = pq.read_table(path)
        except (OSError, pa.ArrowException) as error:
            raise UserError(f"{path} must be a Parquet file. Received: {error}.") from None
        if ID_COLUMN not in table.column_names:
            raise UserError(
                f"{path} must have the column {ID_COLUMN}. "
                f"Received: {', '.join(table.column_names)}."
            )
        return cls(table)

    @property
    def columns(self) -> list[str]:
        """Names of the columns, without the id."""
        return list(self._table.column_names)

    def rows(self, item_ids: np.ndarray) -> list[dict[str, str | None]]:
        """What is known of items [M]: a dict of all columns each, None where nothing is known."""
        wanted = np.asarray(item_ids).astype(str)
        if not len(self._ids) or not len(wanted):
            return [dict.fromkeys(self.columns) for _ in wanted]
        place = np.minimum(np.searchsorted(self._ids, wanted), len(self._ids) - 1)
        known = self._ids[place] == wanted
        places = pa.array(self._order[place], mask=~known)
        columns = {name: self._table.column(name).take(places) for name in self.columns}
        values = {name: column.to_pylist() for name, column in columns.items()}
        return [{name: values[name][row] for name in values} for row in range(len(wanted))]
