"""The best that any policy could do with the ranking of the towers (docs/maths.md, "Knobs")."""

import numpy as np

from pebr_tf.cutoff.candidates import Candidates
from pebr_tf.cutoff.policies.base import Policy
from pebr_tf.metrics.ranked import Ranks


class OraclePolicy(Policy):
    """score = recall that an item buys; this policy uses the relevant items themselves."""

    name = "oracle"
    title = "oracle"

    def scores(self, candidates: Candidates) -> np.ndarray:
        return oracle_scores(candidates.relevant, candidates.totals, candidates.depth)


def oracle_scores(relevant: Ranks, totals: np.ndarray, depth: int) -> np.ndarray:
    """[Q, M] float32 recall that an item buys, for M = `depth`; -inf past the last relevant item.

    `totals` [Q] are the numbers of relevant items.
    """
    scores = np.full((len(totals), depth), -np.inf, np.float32)
    inside = relevant.ranks < depth
    rows, ranks = relevant.rows[inside], relevant.ranks[inside]
    order = np.lexsort((ranks, rows))
    rows, ends = rows[order], ranks[order] + 1
    splits = np.searchsorted(rows, np.arange(len(totals) + 1))
    for row in np.unique(rows):
        begin = 0
        for end, hits in _envelope(ends[splits[row] : splits[row + 1]]):
            scores[row, begin:end] = hits / (end - begin) / totals[row]
            begin = end
    return scores


def _envelope(ends: np.ndarray) -> list[tuple[int, int]]:
    """Segments of the concave envelope: where each ends, and how many relevant items it has.

    `ends` are the rising lengths of the prefixes that end in a relevant item.
    """
    # Length and relevant items of each segment. A segment steeper than its predecessor joins it.
    segments: list[tuple[int, int]] = []
    before = 0
    for end in ends.tolist():
        length, hits = end - before, 1
        while segments and hits * segments[-1][0] >= segments[-1][1] * length:
            longer, more = segments.pop()
            length, hits = length + longer, hits + more
        segments.append((length, hits))
        before = end
    lengths = np.cumsum([length for length, _ in segments]).tolist()
    return [(end, hits) for end, (_, hits) in zip(lengths, segments, strict=True)]
