"""Queries from broad to specific, the items relevant to each, and their popularity."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pebr_tf.data.synthetic.catalogue import Catalogue
from pebr_tf.data.synthetic.levels import GROUPINGS, QUERY_KINDS, Constraints, Grouping
from pebr_tf.data.synthetic.text import query_texts
from pebr_tf.errors import UserError

_BREADTH_PREFERENCE = 1.3  # A candidate's weight inside its kind: relevant items ** preference.
_POPULARITY_EXPONENT = 1.0
_POPULARITY_SHIFT = 8.0  # Zipf-Mandelbrot: keeps the first query from taking a tenth of the clicks.
_POPULARITY_SPREAD = 1.2  # Noise on log(relevant items) in the order of popularity.


@dataclass(frozen=True)
class Queries:
    """The queries (Q), broad ones first, and their relevant items (P pairs) in CSR form.

    Attributes:
      texts: All different, string [Q].
      constraints: What each asks for.
      row_splits: Query q owns `item_indices[row_splits[q]:row_splits[q + 1]]`, int64 [Q + 1].
      item_indices: Relevant items, ascending inside a query, int32 [P].
      popularity: Share of the clicks, float64 [Q], sums to 1.
    """

    texts: pa.Array
    constraints: Constraints
    row_splits: npt.NDArray[np.int64]
    item_indices: npt.NDArray[np.int32]
    popularity: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.constraints)

    @property
    def relevant_counts(self) -> npt.NDArray[np.int64]:
        """Number of relevant items of every query, int64 [Q], at least 1."""
        return np.diff(self.row_splits)

    def relevant(self, query: int) -> npt.NDArray[np.int32]:
        """The items relevant to one query, ascending, int32 [relevant items]."""
        return self.item_indices[self.row_splits[query] : self.row_splits[query + 1]]


@dataclass(frozen=True)
class _Candidates:
    """Possible queries of a grouping, [K] each; the highest priorities are asked first."""

    keys: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    priorities: npt.NDArray[np.float64]

    def take(self, places: npt.NDArray[np.integer]) -> "_Candidates":
        return _Candidates(self.keys[places], self.counts[places], self.priorities[places])


def make_queries(catalogue: Catalogue, queries: int, generator: np.random.Generator) -> Queries:
    """Draws queries that the catalogue answers, with their exact relevance and popularity.

    Memory: 4 bytes per relevant pair, of which there are at most `PAIRS_PER_ITEM` per item for any
    number of queries, and about 150 bytes per item during the computation.
    """
    available = np.zeros(len(QUERY_KINDS), np.int64)
    candidates = []
    for grouping in GROUPINGS:
        found = _candidates(catalogue, grouping, generator)
        available[grouping.kind] += len(found.keys)
        # A grouping never provides more than all queries: the rest is dropped to save memory.
        candidates.append(_highest(found, queries))
    if queries > available.sum():
        raise UserError(
            f"--queries must be at most {available.sum()}, which is all that this catalogue of "
            f"{len(catalogue)} items can answer. Received: {queries}."
        )
    chosen = _choose(candidates, _quotas(available, queries))
    counts = np.concatenate([some.counts for some in chosen])
    row_splits = np.concatenate([[0], np.cumsum(counts)])
    item_indices = _relevant_items(catalogue, chosen, int(row_splits[-1]))
    constraints = _constraints(catalogue, chosen, item_indices[row_splits[:-1]])
    return Queries(
        texts=query_texts(catalogue, constraints, generator),
        constraints=constraints,
        row_splits=row_splits,
        item_indices=item_indices,
        popularity=_popularity(counts, generator),
    )


def _candidates(
    catalogue: Catalogue, grouping: Grouping, generator: np.random.Generator
) -> _Candidates:
    # Shifted by one, so that the items without the attribute are counted apart, at 0.
    counts = np.bincount(grouping.keys(catalogue).ravel() + 1)[1:]
    keys = np.flatnonzero(counts)
    counts = counts[keys]
    # The highest of log(u) / weight are a weighted draw without replacement (Efraimidis, Spirakis).
    weight = counts.astype(np.float64) ** _BREADTH_PREFERENCE
    return _Candidates(keys, counts, np.log(1.0 - generator.random(len(keys))) / weight)


def _highest(candidates: _Candidates, number: int) -> _Candidates:
    if number >= len(candidates.keys):
        return candidates
    cut = len(candidates.keys) - number
    return candidates.take(np.argpartition(candidates.priorities, cut)[cut:])


def _quotas(available: npt.NDArray[np.int64], queries: int) -> npt.NDArray[np.int64]:
    """Splits the queries over the kinds by their shares, and what one lacks over the others."""
    share = np.array([kind.share for kind in QUERY_KINDS])
    quotas = np.zeros(len(QUERY_KINDS), np.int64)
    while (left := queries - int(quotas.sum())) > 0:
        open_share = np.where(quotas < available, share, 0.0)
        wanted = np.floor(left * open_share / open_share.sum()).astype(np.int64)
        if not wanted.any():
            wanted[np.flatnonzero(open_share)[:left]] = 1
        quotas = np.minimum(quotas + wanted, available)
    return quotas


def _choose(candidates: list[_Candidates], quotas: npt.NDArray[np.int64]) -> list[_Candidates]:
    """Keeps the highest priorities of each kind; the keys of a grouping come out ascending."""
    chosen = []
    grouping_kind = np.array([grouping.kind for grouping in GROUPINGS])
    for kind, quota in enumerate(quotas):
        members = [candidates[number] for number in np.flatnonzero(grouping_kind == kind)]
        priorities = np.concatenate([member.priorities for member in members])
        owner = np.repeat(np.arange(len(members)), [len(member.keys) for member in members])
        position = np.concatenate([np.arange(len(member.keys)) for member in members])
        kept = np.argsort(-priorities, kind="stable")[:quota]
        for number, member in enumerate(members):
            mine = member.take(position[kept[owner[kept] == number]])
            chosen.append(mine.take(np.argsort(mine.keys)))
    return chosen


def _constraints(
    catalogue: Catalogue, chosen: list[_Candidates], items: npt.NDArray[np.int32]
) -> Constraints:
    counts = [len(some.keys) for some in chosen]
    kind = np.repeat(np.array([grouping.kind for grouping in GROUPINGS], np.int8), counts)
    parts = np.split(items, np.cumsum(counts)[:-1])
    values = [
        grouping.values(some.keys, part, catalogue)
        for grouping, some, part in zip(GROUPINGS, chosen, parts, strict=True)
    ]
    return Constraints(kind, items, np.concatenate(values))


def _relevant_items(
    catalogue: Catalogue, chosen: list[_Candidates], pairs: int
) -> npt.NDArray[np.int32]:
    items = np.empty(pairs, np.int32)
    start = 0
    for grouping, some in zip(GROUPINGS, chosen, strict=True):
        if not len(some.keys):
            continue
        # Ascending keys number the queries of the grouping; key -1 reads the last place, "none".
        query_of_key = np.full(int(some.keys[-1]) + 2, -1, np.int32)
        query_of_key[some.keys] = np.arange(len(some.keys), dtype=np.int32)
        keys = grouping.keys(catalogue)
        keys[keys > some.keys[-1]] = -1
        query = query_of_key[keys]
        places = np.flatnonzero(query >= 0)
        item = (places % len(catalogue)).astype(np.int32)
        order = np.lexsort((item, query.ravel()[places]))
        items[start : start + len(item)] = item[order]
        start += len(item)
    return items


def _popularity(
    counts: npt.NDArray[np.int64], generator: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Zipf-like shares whose order follows the breadth of the queries, with noise, [Q]."""
    appeal = np.log(counts) + generator.normal(0.0, _POPULARITY_SPREAD, len(counts))
    rank = np.empty(len(counts), np.int64)
    rank[np.argsort(-appeal, kind="stable")] = np.arange(1, len(counts) + 1)
    share = (rank + _POPULARITY_SHIFT) ** -_POPULARITY_EXPONENT
    return share / share.sum()
