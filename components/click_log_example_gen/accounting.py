"""No row vanishes: what was read is what was kept and what was refused, and the refused are few."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from components.click_log_example_gen.ledger import Part
from pebr_tf.config import Data, Split
from pebr_tf.data import splits
from pebr_tf.errors import UserError

TITLES = {"items": "catalogue", "clicks": "click log"}


@dataclass(frozen=True)
class Account:
    """What became of the rows of a table.

    Attributes:
      table: "clicks" or "items".
      files: That were read.
      read: Rows read.
      kept: Rows written, by split.
      reasons: Rows refused, by reason.
    """

    table: str
    files: Sequence[str]
    read: int
    kept: dict[str, int]
    reasons: dict[str, int]

    @classmethod
    def of(cls, table: str, files: Sequence[str], parts: Iterable[Part]) -> Account:
        """Sums the parts of a table.

        Raises:
          RuntimeError: A row was lost or counted twice.
        """
        read = 0
        kept: collections.Counter[str] = collections.Counter()
        reasons: collections.Counter[str] = collections.Counter()
        for part in parts:
            if part.table == table:
                read += part.read
                kept.update(part.kept)
                reasons.update(part.reasons)
        if read != kept.total() + reasons.total():
            raise RuntimeError(
                f"{read} rows of {table} were read, {kept.total()} kept, {reasons.total()} refused."
            )
        return cls(table, files, read, dict(kept), dict(reasons.most_common()))

    @property
    def refused(self) -> int:
        """Rows refused."""
        return sum(self.reasons.values())

    def to_mapping(self) -> dict[str, Any]:
        """As accounting.json has it."""
        return {
            "read": self.read,
            "kept": sum(self.kept.values()),
            "rejected": self.refused,
            "reasons": self.reasons,
            "files": list(self.files),
        }

    def check(self, data: Data, letters: str) -> None:
        """Refuses too many bad rows and none that is good.

        Args:
          data: With the limit.
          letters: Where the dead letters are.

        Raises:
          UserError: Either.
        """
        title = TITLES[self.table]
        counts = ", ".join(f"{count:,} {reason}" for reason, count in self.reasons.items())
        if self.refused > data.reject_limit * self.read:
            raise UserError(
                f"Bad rows of the {title} must stay within data.reject_limit "
                f"({data.reject_limit:.3%}). Received: {self.refused:,} of {self.read:,} rows "
                f"({self.refused / self.read:.3%}): {counts}. They are listed in {letters}."
            )
        if not self.kept:
            found = f"{self.read:,} rows ({counts})" if counts else "no row"
            where = ", ".join(self.files) or "the click log"
            raise UserError(f"The {title} must have a good row. Received: {found} in {where}.")


def check_splits(split: Split, kept: dict[str, int]) -> None:
    """Refuses a split without a click.

    Raises:
      UserError: There is one.
    """
    if all(kept.get(name) for name in splits.NAMES):
        return
    shares = (1 - split.calibrate - split.test, split.calibrate, split.test)
    wanted = ", ".join(f"{n} {share:.0%}" for n, share in zip(splits.NAMES, shares, strict=True))
    received = ", ".join(f"{name} {kept.get(name, 0):,}" for name in splits.NAMES)
    empty = " and ".join(name for name in splits.NAMES if not kept.get(name))
    raise UserError(
        f"Every split must have a click (split.by: {split.by}; {wanted}), but none is in {empty}: "
        f"more queries, or another split.by or seed, may help. Received clicks: {received}."
    )
