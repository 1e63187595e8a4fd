"""Items of a head, a torso and a tail query, with their places on a sphere."""

import re
from typing import Any

import numpy as np

from experiments.released import SOURCES as RELEASED_SOURCES
from experiments.released import released
from experiments.study import Study
from pebr_tf.metrics.strata import STRATA

SOURCES = (*RELEASED_SOURCES, "experiments.spheres_measured")
# Queries that stand for their stratum have a count between these percentiles of it.
MIDDLE = (40, 60)
LONGEST_TEXT = 28
# With fewer there is little to see of what a list misses.
LEAST_CLICKS = 4
# Of t-SNE: how many neighbours count. Of few points a third, as more tell nothing.
PERPLEXITY = 30
_WORD = re.compile(r"[^\W\d_]{4,}")


def measure(towers: Study, recall: float, background: int, iterations: int) -> dict[str, Any]:
    """The lists of three queries where a share is asked for, and top k of the same average.

    Args:
      towers: Trained.
      recall: The share.
      background: Items that are drawn besides those of the lists.
      iterations: Of t-SNE.

    Returns:
      `queries`, one for each stratum that has any, as `_described` gives them; `places` [P], the
      items that are drawn; `points` [P, 3] and `query_points` [3, 3], unit vectors; `average`, the
      items of a test query, and `top_k`, the same as a whole number; `level_temperature`.
    """
    release = released(towers)
    counts = release.counts(recall)
    average = float(counts.mean())
    fixed = max(1, round(average))
    rows = towers.rows("test")
    chosen = examples(
        counts,
        release.test.queries.strata,
        release.test.queries.vectors,
        towers.corpus.queries[rows],
        release.lists.totals,
    )
    queries = [_described(towers, int(rows[row]), int(counts[row]), fixed) for row in chosen]
    shown = [query[name] for query in queries for name in ("items", "clicked")]
    places = drawn_items(len(towers.items), shown, background)
    vectors = np.concatenate([towers.items[places], towers.queries.vectors[rows[chosen]]])
    points = on_sphere(vectors, iterations)
    return {
        "queries": queries,
        "places": places,
        "points": points[: len(places)],
        "query_points": points[len(places) :],
        "top_k": fixed,
        "average": average,
        "level_temperature": release.policy.level_temperature,
    }


def examples(
    counts: np.ndarray,
    strata: np.ndarray,
    vectors: np.ndarray,
    texts: np.ndarray,
    clicks: np.ndarray,
) -> list[int]:
    """Places of the queries that stand for head, torso and tail, one of each that has any.

    The first is the one whose count is nearest to the median of its stratum; of equally near ones
    that with the most held-out clicks. The next are of the middle of their strata, see MIDDLE, and
    there the nearest to the one before, so that the three are about the same. Queries that nobody
    can read, or that have fewer than LEAST_CLICKS, are taken only if there is no other.

    Args:
      counts: [Q] items of each query.
      strata: [Q] places in STRATA.
      vectors: [Q, n] unit vectors.
      texts: [Q].
      clicks: [Q] held-out clicks.
    """
    telling = np.array([readable(text) for text in texts], bool) & (clicks >= LEAST_CLICKS)
    chosen: list[int] = []
    for place in range(len(STRATA)):
        inside = strata == place
        if not inside.any():
            continue
        low, middle, high = np.percentile(counts[inside], (MIDDLE[0], 50, MIDDLE[1]))
        allowed = inside & telling if (inside & telling).any() else inside
        if chosen and (central := allowed & (counts >= low) & (counts <= high)).any():
            away = 1 - vectors @ vectors[chosen[-1]]
            order = np.lexsort((-clicks, away))
            allowed = central
        else:
            order = np.lexsort((-clicks, np.abs(counts - middle)))
        chosen.append(int(order[allowed[order]][0]))
    return chosen


def readable(text: str) -> bool:
    """Whether a query is short and has a word of four letters."""
    return len(text) <= LONGEST_TEXT and text.isprintable() and bool(_WORD.search(text))


def drawn_items(items: int, shown: list[np.ndarray], background: int) -> np.ndarray:
    """[P] rising places of the items to draw: those that are shown, and a sample of all.

    Args:
      items: N.
      shown: Places of items that must be there.
      background: Size of the sample.
    """
    sample = np.random.default_rng(0).choice(items, min(background, items), replace=False)
    return np.unique(np.concatenate([sample, *shown])).astype(np.int64)


def on_sphere(vectors: np.ndarray, iterations: int) -> np.ndarray:
    """[P, 3] float64 unit vectors: t-SNE to three dimensions, seen from the middle.

    Args:
      vectors: [P, n] of at least four points.
      iterations: Of t-SNE, at least 250.
    """
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    perplexity = min(PERPLEXITY, (len(vectors) - 1) / 3)
    reduction = TSNE(
        3, perplexity=perplexity, max_iter=iterations, init="pca", random_state=0, n_jobs=1
    )
    # With one thread sums have one order, and so the points are the same in every run.
    with threadpool_limits(1):
        points = reduction.fit_transform(vectors.astype(np.float64)).astype(np.float64)
    points -= points.mean(axis=0)
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    # A point in the very middle has no direction; any will do.
    points = np.where(lengths > 0, points, [[0.0, 0.0, 1.0]])
    return points / np.where(lengths > 0, lengths, 1)


def _described(towers: Study, query: int, count: int, fixed: int) -> dict[str, Any]:
    """A query and its two lists.

    Returns:
      `text`, `stratum`, `frequency` (clicks in the training split); `count` and `fixed`, items of
      the two lists; `items`, places of those of the longer one, best first; `clicked`, places of
      the held-out clicks; `kept` and `fixed_kept`, how many of them the lists have; `threshold` and
      `fixed_threshold`, cosines of the last items; `first`, `last` and `fixed_last`, their titles.
    """
    corpus = towers.corpus
    cosines = np.clip(towers.items @ towers.queries.vectors[query], -1, 1)
    order = np.argsort(-cosines, kind="stable")
    pairs = corpus.pairs("test")
    clicked = pairs.items[pairs.rows == query]
    ends = {"": count, "fixed_": min(fixed, len(order))}
    described = {
        "text": str(corpus.queries[query]),
        "stratum": STRATA[corpus.strata[query]],
        "frequency": int(corpus.frequency[query]),
        "count": ends[""],
        "fixed": ends["fixed_"],
        "items": order[: max(ends.values())],
        "clicked": clicked,
        "first": str(corpus.titles[order[0]]),
    }
    for name, end in ends.items():
        last = order[end - 1]
        described[f"{name}kept"] = int(np.isin(clicked, order[:end]).sum())
        described[f"{name}threshold"] = float(cosines[last]) if end else 1.0
        described[f"{name}last"] = str(corpus.titles[last]) if end else ""
    return described
