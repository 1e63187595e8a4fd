"""Reads the clicked (query, item) pairs of Examples, each pair once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tfx.types import Artifact

from pebr_tf.cutoff.candidates import ClickedPairs
from pebr_tf.data.sampled_pairs import SampledPairs

# Queries of a split that are compared with all items: as many as have this many cosines, within
# bounds. The standard error of a mean recall over a thousand is below .016.
MOST_COSINES = 2_000_000_000
FEWEST_QUERIES, MOST_QUERIES = 1_000, 20_000


@dataclass(frozen=True)
class ClickLogPairs:
    """Different (query, item) pairs that have clicks.

    Attributes:
      queries: The different queries.
      rows: [P] position in `queries` of each pair's query.
      item_ids: [P] text.
      clicks: Clicks of the split, also of queries that were not sampled.
    """

    queries: list[str]
    rows: np.ndarray
    item_ids: pa.Array
    clicks: int

    def limited(self, count: int) -> ClickLogPairs:
        """The pairs of at most `count` queries: a random sample with a fixed seed."""
        if len(self.queries) <= count:
            return self
        chosen = np.sort(np.random.default_rng(0).permutation(len(self.queries))[:count])
        position = np.full(len(self.queries), -1)
        position[chosen] = np.arange(count)
        kept = position[self.rows] >= 0
        queries = [self.queries[row] for row in chosen]
        item_ids = self.item_ids.filter(pa.array(kept))
        return ClickLogPairs(queries, position[self.rows[kept]], item_ids, self.clicks)

    def joined(self, other: ClickLogPairs) -> ClickLogPairs:
        """These pairs and those of other queries."""
        return ClickLogPairs(
            self.queries + other.queries,
            np.concatenate([self.rows, other.rows + len(self.queries)]),
            pa.concat_arrays([self.item_ids, other.item_ids]),
            self.clicks + other.clicks,
        )

    def pairs(self, ids: np.ndarray) -> ClickedPairs:
        """The pairs with items as positions in `ids` [N]; -1 for an item that is not there."""
        known = pa.array(ids).cast(pa.large_string())
        found = pc.fill_null(pc.index_in(self.item_ids, value_set=known), -1)
        return ClickedPairs(self.rows, found.to_numpy().astype(np.int64))


def query_limit(items: int) -> int:
    """Most queries of a split that are compared with all of so many items."""
    return min(max(MOST_COSINES // items, FEWEST_QUERIES), MOST_QUERIES)


def read_pairs(examples: Artifact, split: str) -> ClickLogPairs:
    """The clicked pairs of a sample of the queries of a split, queries sorted."""
    sampled = SampledPairs.load(examples.uri)
    table = sampled.of_split(split)
    encoded = table["query"].combine_chunks().dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    position = np.empty_like(order, dtype=np.int64)
    position[order] = np.arange(len(order))
    queries = encoded.dictionary.take(order).to_pylist()
    rows = position[encoded.indices.to_numpy()]
    return ClickLogPairs(queries, rows, table["item_id"].combine_chunks(), sampled.clicks_of(split))


def read_training_pairs(examples: Artifact, queries: list[str]) -> ClickLogPairs:
    """The clicked pairs of sampled `queries` in the training split."""
    sampled = SampledPairs.load(examples.uri)
    wanted, table = pa.array(queries, pa.large_string()), sampled.of_split("train")
    table = table.filter(pc.is_in(table["query"], value_set=wanted))
    rows = pc.index_in(table["query"], value_set=wanted).to_numpy().astype(np.int64)
    item_ids = table["item_id"].combine_chunks()
    return ClickLogPairs(queries, rows, item_ids, sampled.clicks_of("train"))
