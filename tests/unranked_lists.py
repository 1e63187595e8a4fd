"""Lists in any order, measured by looking at every score: the oracle of `RankedLists`."""

from dataclasses import dataclass

import numpy as np

from pebr_tf.metrics.ranked import ListSummary, RankedLists


@dataclass(frozen=True)
class UnrankedLists:
    """Scores [Q, M] (-inf: no candidate), whether each is relevant [Q, M], and totals [Q]."""

    scores: np.ndarray
    relevant: np.ndarray
    totals: np.ndarray

    def part(self, queries):
        return UnrankedLists(self.scores[queries], self.relevant[queries], self.totals[queries])


def unranked(lists: RankedLists) -> UnrankedLists:
    """The same lists in the general form."""
    relevant = np.zeros(lists.scores.shape, bool)
    inside = lists.relevant.ranks < lists.lengths[lists.relevant.rows]
    relevant[lists.relevant.rows[inside], lists.relevant.ranks[inside]] = True
    scores = lists.scores
    if lists.offsets is not None:
        scores = scores - lists.offsets[:, None].astype(np.float32)
    return UnrankedLists(scores, relevant, lists.totals)


def cutoff_at(lists: UnrankedLists, average: float) -> float:
    """The lowest cut-off that retrieves at most `average` items per query on average."""
    candidates = lists.scores[lists.scores > -np.inf]
    allowed = int(np.floor(average * len(lists.scores) + 1e-9))
    values, counts = np.unique(candidates, return_counts=True)
    at_least = np.cumsum(counts[::-1])[::-1]
    return float(values[at_least <= allowed].min(initial=np.inf))


def retrieved(lists: UnrankedLists, cutoff: float) -> np.ndarray:
    return (lists.scores >= cutoff) & (lists.scores > -np.inf)


def evaluate(lists: UnrankedLists, cutoff: float) -> ListSummary:
    """Precision and recall of what scores at least `cutoff`."""
    found = retrieved(lists, cutoff)
    counts, hits = found.sum(axis=1), (found & lists.relevant).sum(axis=1)
    return ListSummary.of(counts, hits, lists.totals)
