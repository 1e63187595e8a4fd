"""The payload: the columns of the catalogue that answers contain, looked up by item id."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pebr_tf.errors import UserError

ID_COLUMN = "item_id"
# Items whose fields are kept for each choice of columns, and choices; beyond, all are dropped.
KEPT_ITEMS = 200_000
KEPT_CHOICES = 8


class Payload:
    """Rows of a catalogue, found by item id; read-only, so safe for concurrent callers."""

    def __init__(self, table: pa.Table):
        ids = table.column(ID_COLUMN).to_pylist()
        hashes = _hashes(ids)
        order = np.argsort(hashes, kind="stable")
        # Searching for numbers is several times faster than searching for strings.
        self._hashes, self._order = hashes[order], order
        self._ids = np.asarray(ids, str)
        same = np.flatnonzero(self._hashes[1:] == self._hashes[:-1])
        self._ambiguous = {ids[row]: row for at in (same, same + 1) for row in order[at]}
        # One chunk: otherwise Arrow joins the chunks of a column on every `take`.
        self._table = table.drop([ID_COLUMN]).combine_chunks()
        self._kept: dict[tuple[str, ...] | None, dict[str, dict[str, str]]] = {}

    @classmethod
    def load(cls, path: Path) -> Payload:
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
        """Column -> [M] values of items [M], None where an item or its value is missing.

        `columns` of None stands for all of them.
        """
        names = self.columns if columns is None else list(columns)
        wanted = np.asarray(item_ids).astype(str)
        if not len(self._ids) or not len(wanted):
            return {name: [None] * len(wanted) for name in names}
        found = np.searchsorted(self._hashes, _hashes(wanted.tolist()))
        rows = self._order[np.minimum(found, len(self._order) - 1)]
        if self._ambiguous:
            for at, item_id in enumerate(wanted.tolist()):
                rows[at] = self._ambiguous.get(item_id, rows[at])
        indices = pa.array(rows, mask=self._ids[rows] != wanted)
        # NumPy's `tolist` is faster than Arrow's, which makes a scalar object of each value.
        taken = (self._table.column(name).take(indices) for name in names)
        return {name: column.to_numpy().tolist() for name, column in zip(names, taken, strict=True)}

    def fields(
        self, item_ids: np.ndarray, columns: tuple[str, ...] | None = None
    ) -> list[dict[str, str]]:
        """Returns the values of items [M], one dict each, without columns that have no value.

        The dicts are kept for later lists and shared between them: do not change them. A lookup
        for each list would take longer than its search. `columns` of None stands for all of them.
        """
        texts = np.asarray(item_ids).astype(str).tolist()
        if columns not in self._kept and len(self._kept) >= KEPT_CHOICES:
            self._kept = {}
        kept = self._kept.setdefault(columns, {})
        fields = [kept[text] for text in texts if text in kept]
        if len(fields) == len(texts):
            return fields
        missing = {text for text in texts if text not in kept}
        if len(kept) + len(missing) > KEPT_ITEMS:
            # A new dict, because another thread may be reading the old one.
            kept = self._kept[columns] = {}
            missing = set(texts)
        found = self.values(np.array(list(missing)), columns)
        rows = zip(*found.values(), strict=True) if found else repeat((), len(missing))
        for text, row in zip(missing, rows, strict=True):
            values = zip(found, row, strict=True)
            kept[text] = {name: value for name, value in values if value is not None}
        return [kept[text] for text in texts]


def _hashes(ids: list[str]) -> np.ndarray:
    """[M] int64 hashes, valid in this process only."""
    return np.fromiter(map(hash, ids), np.int64, len(ids))
