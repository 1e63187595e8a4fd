"""Rows on their way through Beam."""

from __future__ import annotations

from dataclasses import dataclass

from pebr_tf.data.tables import Batch


@dataclass(frozen=True)
class Rows:
    """Some rows of a source.

    Attributes:
      place: Of the source among those of its table, from 0.
      source: Its name, as the dead letters show it.
      batch: The rows.
      numbered: Whether the numbers of the rows mean something to a user; those of a query do not.
    """

    place: int
    source: str
    batch: Batch
    numbered: bool = True
