"""Some rows of a table, and the rejected rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa


@dataclass(frozen=True)
class Rejected:
    """Rows that are not used, by their numbers in the file as those of `Batch`, and reasons [R]."""

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
    """Accepted rows of a file, in columns, and the rejected rows of the same part of it.

    `rows` [M] are their numbers, int64, from 1, without a header and blank lines.
    """

    columns: pa.RecordBatch
    rows: np.ndarray
    rejected: Rejected

    def __len__(self) -> int:
        return len(self.rows)
