"""The level operation in one pass over all vectors, for catalogues where no index is faster."""

from __future__ import annotations

import numpy as np

from pebr_tf.distributions.level_numpy import cosines_of, levels_at, logits_of
from pebr_tf.distributions.logit import Family
from pebr_tf.retrieval.exact import ROUNDING, cosines, passing, products
from pebr_tf.retrieval.result import RangeResult, ranked, splits_of
from pebr_tf.retrieval.searcher import Searcher, check_thresholds

# Scores of one step, 8 MB, which stay in a processor's cache.
BLOCK_SCORES = 2_000_000


def search_in_one_pass(
    searcher: Searcher,
    queries: np.ndarray,
    tau: np.ndarray,
    cutoff: np.ndarray,
    level_temperature: float,
    family: Family,
    floor: int,
    limit: int,
) -> tuple[RangeResult, np.ndarray]:
    """Items whose logit is at least `cutoff` [B] above the level, and exact levels [B].

    Of checked queries [B, n] with temperatures `tau` [B], on an index of at least one item. Every
    query gets `floor` items, and a row that `limit` shortens is `truncated`.
    """
    count, floor = len(searcher), min(floor, len(searcher))
    levels, thresholds = np.empty_like(tau), np.empty_like(tau)
    found = []
    step = max(1, BLOCK_SCORES // count)
    for begin in range(0, len(queries), step):
        part = slice(begin, begin + step)
        scores = products(queries[part], searcher.vectors)
        levels[part] = levels_at(logits_of(scores, tau[part], family), [level_temperature])[:, 0]
        ends = cosines_of(cutoff[part] + levels[part], tau[part], family)
        thresholds[part] = ends = check_thresholds(ends, len(ends))
        if floor:
            rank = count - floor
            best = scores.max(1) if floor == 1 else np.partition(scores, rank, axis=1)[:, rank]
            ends = np.minimum(ends, best - ROUNDING)
        rows, positions = passing(scores, ends, max(limit, floor) + 1)
        found.append((rows + begin, positions))
    rows, positions = (np.concatenate(each) for each in zip(*found, strict=True))
    scores = cosines(queries, searcher.vectors, rows, positions)
    ids, scores = ranked(rows, searcher.ids[positions], scores)
    splits = splits_of(np.bincount(rows, minlength=len(queries)))
    if floor:
        thresholds = np.minimum(thresholds, scores[splits[:-1] + floor - 1])
    passed = scores >= thresholds[rows]
    counts = np.bincount(rows[passed], minlength=len(queries))
    items = RangeResult(
        row_splits=splits_of(counts),
        item_ids=ids[passed],
        scores=scores[passed],
        thresholds=thresholds,
        expected_counts=counts.astype(np.float32),
        truncated=np.zeros(len(queries), bool),
    )
    return items.limited(limit), levels
