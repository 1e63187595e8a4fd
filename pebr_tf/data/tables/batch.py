"""Some rows of a table, and the rejected rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa


@dataclass(frozen=True)
class Rejected:
    """Rows that are not used.

    Attributes:
      rows: [R] int64, number of each in its file, from 1, without a header and blank lines.
      reasons: [R] text, why.
    """

    rows: np.ndarray
    reasons: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def none(cls) -> Rejected:
        return cls(np.empty(0, np.int64), np.empty(0, object))

    @classmethod
    def of(cls, rows: np.ndarray, reason: str) -> Rejected:
        return cls(np.asarray(rows, np.int64), np.full(len(rows), reason, object))

    def and_also(self, other: Rejected) -> Rejected:
        """These and others, in the order of the file."""
        rows = np.concatenate([self.rows, other.rows])
        order = np.argsort(rows, kind="stable")
        return Rejected(rows[order], np.concatenate([self.reasons, other.reasons])[order])


@dataclass(frozen=True)
class Batch:
    """Rows of one file, in columns.

    Attributes:
      columns: The accepted rows.
      rows: [M] int64, number of each in its file, from 1, without a header and blank lines.
      rejected: The rejected rows of the same part of the file.
    """

    columns: pa.RecordBatch
    rows: np.ndarray
    rejected: Rejected

    def __len__(self) -> int:
        return len(self.rows)
