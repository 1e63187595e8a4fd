"""Row accounting: rows read = rows kept + rows rejected, and few rows are rejected."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pebr_tf.errors import UserError

TITLES = {"items": "catalogue", "clicks": "click log"}


@dataclass(frozen=True)
class Account:
    """What happened to the rows of a table.

    Attributes:
      examples: A rejected value of a reason.
    """

    table: str
    files: Sequence[str]
    read: int
    kept: dict[str, int]
    reasons: dict[str, int]
    examples: dict[str, str] = field(default_factory=dict)

    @property
    def rejected(self) -> int:
        return sum(self.reasons.values())

    @property
    def reasons_text(self) -> str:
        """The reasons with their rows, as an error shows them."""
        return ", ".join(
            f"{count:,} {reason}"
            + (f", such as {self.examples[reason]!r}" if reason in self.examples else "")
            for reason, count in self.reasons.items()
        )

    def to_mapping(self) -> dict[str, Any]:
        return {
            "read": self.read,
            "kept": sum(self.kept.values()),
            "rejected": self.rejected,
            "reasons": self.reasons,
            "files": list(self.files),
        }

    def check(self, limit: float, letters: str | None = None) -> None:
        """Checks the number of rejected rows; `letters` is the file that lists them."""
        title = TITLES[self.table]
        if self.rejected > limit * self.read:
            listed = f" They are listed in {letters}." if letters else ""
            raise UserError(
                f"Bad rows of the {title} must stay within data.reject_limit ({limit:.3%}). "
                f"Received: {self.rejected:,} of {self.read:,} rows "
                f"({self.rejected / self.read:.3%}): {self.reasons_text}.{listed}"
            )
        if not self.kept:
            found = f"{self.read:,} rows ({self.reasons_text})" if self.reasons else "no row"
            where = ", ".join(self.files) or "the click log"
            raise UserError(f"The {title} must have a good row. Received: {found} in {where}.")
