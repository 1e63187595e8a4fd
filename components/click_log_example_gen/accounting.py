"""Row accounting: rows read = rows kept + rows rejected, and few rows are rejected."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from components.click_log_example_gen.bundle_writer import BundleSummary
from pebr_tf.config import Data
from pebr_tf.errors import UserError

TITLES = {"items": "catalogue", "clicks": "click log"}


@dataclass(frozen=True)
class Account:
    """What happened to the rows of a table."""

    table: str
    files: Sequence[str]
    read: int
    kept: dict[str, int]
    reasons: dict[str, int]

    @classmethod
    def of(cls, table: str, files: Sequence[str], summaries: Iterable[BundleSummary]) -> Account:
        """Sums the bundles of a table.

        Raises:
          RuntimeError: A row was lost or counted twice.
        """
        read = 0
        kept: collections.Counter[str] = collections.Counter()
        reasons: collections.Counter[str] = collections.Counter()
        for summary in summaries:
            if summary.table == table:
                read += summary.read
                kept.update(summary.kept)
                reasons.update(summary.reasons)
        if read != kept.total() + reasons.total():
            raise RuntimeError(
                f"{read} rows of {table} were read, {kept.total()} kept and "
                f"{reasons.total()} rejected."
            )
        return cls(table, files, read, dict(kept), dict(reasons.most_common()))

    @property
    def rejected(self) -> int:
        """Number of rows rejected."""
        return sum(self.reasons.values())

    def to_mapping(self) -> dict[str, Any]:
        """The content of accounting.json."""
        return {
            "read": self.read,
            "kept": sum(self.kept.values()),
            "rejected": self.rejected,
            "reasons": self.reasons,
            "files": list(self.files),
        }

    def check(self, data: Data, letters: str) -> None:
        """Checks the number of rejected rows.

        Raises:
          UserError: Too many rows were rejected, or no row was good.
        """
        title = TITLES[self.table]
        counts = ", ".join(f"{count:,} {reason}" for reason, count in self.reasons.items())
        if self.rejected > data.reject_limit * self.read:
            raise UserError(
                f"Bad rows of the {title} must stay within data.reject_limit "
                f"({data.reject_limit:.3%}). Received: {self.rejected:,} of {self.read:,} rows "
                f"({self.rejected / self.read:.3%}): {counts}. They are listed in {letters}."
            )
        if not self.kept:
            found = f"{self.read:,} rows ({counts})" if counts else "no row"
            where = ", ".join(self.files) or "the click log"
            raise UserError(f"The {title} must have a good row. Received: {found} in {where}.")
