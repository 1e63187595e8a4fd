"""Vectors to search in: a hierarchical mixture with heavy-tailed counts, or a user's own files."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pebr_tf.errors import UserError
from pebr_tf.retrieval.vectors import unit_vectors

# Relevant items per query: the median, the standard deviation of the logarithm, the maximum.
MEDIAN_COUNT, COUNT_DEVIATION, MOST = 150, 1.95, 4_900
BLOCK = 100_000


@dataclass(frozen=True)
class SearchCorpus:
    """Items, and queries with thresholds.

    Attributes:
      name: What it is, in a few words.
      items: [N, n] float32 unit vectors.
      queries: [Q, n] float32 unit vectors.
      thresholds: [Q] float32 cosines.
    """

    name: str
    items: np.ndarray
    queries: np.ndarray
    thresholds: np.ndarray


def clustered(count: int, dimension: int, queries: int, seed: int) -> SearchCorpus:
    """A corpus of topics, subtopics and groups of very different sizes and widths.

    A query stands near a topic, a subtopic or a group, and its threshold gives it a number of
    items drawn from a log-normal law: broad queries get thousands, specific ones a few.
    """
    generator = np.random.default_rng(seed)
    items, levels = _mixture(generator, count, dimension)
    wanted = np.exp(generator.normal(np.log(MEDIAN_COUNT), COUNT_DEVIATION, queries))
    wanted = wanted.clip(1, min(MOST, count // 2)).astype(int)
    chosen = generator.integers(0, count, queries)
    broad, middle, narrow = (level[centre_of[chosen]] for level, centre_of in levels)
    centre = np.where(
        (wanted < 20)[:, None], narrow, np.where((wanted < 400)[:, None], middle, broad)
    )
    vectors = _around(generator, centre, np.full(queries, 0.35))
    thresholds = thresholds_of_counts(items, vectors, wanted)
    return SearchCorpus(f"clustered, seed {seed}", items, vectors, thresholds)


def _mixture(
    generator: np.random.Generator, count: int, dimension: int
) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """Items, and for each level its centres and the centre of each item."""
    topics, subtopics, groups = max(8, count // 10_000), max(32, count // 200), max(64, count // 10)
    weights = [
        generator.zipf(1.6, topics).clip(1, 60).astype(float),
        generator.lognormal(0, 1, subtopics),
        generator.lognormal(0, 0.8, groups),
    ]
    widths = [(0.6, 1.1), (0.4, 0.9), (0.25, 0.7)]
    centres = [_around(generator, np.zeros((topics, dimension), np.float32), np.ones(topics))]
    parents = []
    for level, size in enumerate((subtopics, groups, count)):
        weight = weights[level]
        parent = generator.choice(len(weight), size, p=weight / weight.sum())
        width = generator.uniform(*widths[level], len(weight))
        centres.append(_around(generator, centres[-1], width[parent], parent))
        parents.append(parent)
    group, subtopic = parents[2], parents[1][parents[2]]
    return centres[3], [
        (centres[0], parents[0][subtopic]),
        (centres[1], subtopic),
        (centres[2], group),
    ]


def _around(
    generator: np.random.Generator,
    centres: np.ndarray,
    widths: np.ndarray,
    parents: np.ndarray | None = None,
) -> np.ndarray:
    """[M, n] unit vectors around centres[parents], block by block."""
    parents = np.arange(len(centres)) if parents is None else parents
    dimension = centres.shape[1]
    vectors = np.empty((len(parents), dimension), np.float32)
    for begin in range(0, len(parents), BLOCK):
        part = slice(begin, begin + BLOCK)
        noise = generator.standard_normal((len(parents[part]), dimension), np.float32)
        noise *= (widths[part, None] / np.sqrt(dimension)).astype(np.float32)
        noise += centres[parents[part]]
        vectors[part] = noise / np.linalg.norm(noise, axis=1, keepdims=True)
    return vectors


def thresholds_of_counts(items: np.ndarray, queries: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """[Q] thresholds halfway between the last wanted item of each query and the next."""
    thresholds = np.empty(len(queries), np.float32)
    step = max(1, 64_000_000 // len(items))
    for begin in range(0, len(queries), step):
        scores = queries[begin : begin + step] @ items.T
        for row, score in enumerate(scores, begin):
            place = len(items) - counts[row]
            around = np.partition(score, (place - 1, place))[place - 1 : place + 1]
            thresholds[row] = around.mean()
    return thresholds


def from_files(
    vectors: Path, queries: Path, thresholds: Path, count: int, seed: int
) -> SearchCorpus:
    """A user's own .npy files, checked, with at most `count` of the queries in random order."""
    loaded = {}
    for name, path in {"vectors": vectors, "queries": queries, "thresholds": thresholds}.items():
        try:
            loaded[name] = np.load(path)
        except (OSError, ValueError) as error:
            raise UserError(f"{path} must be a .npy file. Received: {error}.") from None
    try:
        items = unit_vectors("vectors", loaded["vectors"])
        asked = unit_vectors("queries", loaded["queries"], items.shape[1])
    except ValueError as error:
        raise UserError(str(error)) from None
    cosines = loaded["thresholds"].astype(np.float32)
    if cosines.shape != (len(asked),) or np.isnan(cosines).any():
        raise UserError(
            f"{thresholds} must hold {len(asked)} numbers, one per query. "
            f"Received: shape {cosines.shape}."
        )
    chosen = np.random.default_rng(seed).permutation(len(asked))[:count]
    return SearchCorpus(Path(vectors).name, items, asked[chosen], cosines[chosen])
