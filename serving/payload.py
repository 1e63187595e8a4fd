"""What a release knows of an item beside its vector: the columns to answer with."""

from __future__ import annotations

from collections.abc import Iterable
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

    def values(
        self, item_ids: np.ndarray, columns: Iterable[str] | None = None
    ) -> dict[str, list[str | None]]:
        """What is known of items [M]: column -> [M] values, None where nothing is known.

        Args:
          item_ids: [M].
          columns: Some of `columns`; None: all of them.
        """
        names = self.columns if columns is None else list(columns)
        wanted = np.asarray(item_ids).astype(str)
        if not len(self._ids) or not len(wanted):
            return {name: [None] * len(wanted) for name in names}
        place = np.minimum(np.searchsorted(self._ids, wanted), len(self._ids) - 1)
        known = self._ids[place] == wanted
        places = pa.array(self._order[place], mask=~known)
        # Over NumPy, for Arrow makes a Python object of each value on its way to a list.
        taken = (self._table.column(name).take(places) for name in names)
        return {name: column.to_numpy().tolist() for name, column in zip(names, taken, strict=True)}

    def rows(self, item_ids: np.ndarray) -> list[dict[str, str | None]]:
        """What is known of items [M]: a dict of all columns each, None where nothing is known."""
        values = self.values(item_ids)
        return [{name: values[name][row] for name in values} for row in range(len(item_ids))]
