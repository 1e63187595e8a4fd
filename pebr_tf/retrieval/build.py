"""Builds an index folder from item vectors: exact or ScaNN by size, tuned, with check queries."""

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pebr_tf.config import Index
from pebr_tf.files import new_directory
from pebr_tf.retrieval import artifact, scann_files
from pebr_tf.retrieval.artifact import IndexManifest
from pebr_tf.retrieval.exact import BACKGROUND_SAMPLE, ExactSearcher, sample_of
from pebr_tf.retrieval.plan import IndexTuning
from pebr_tf.retrieval.scann_searcher import ScannSearcher
from pebr_tf.retrieval.searcher import check_positive, check_thresholds
from pebr_tf.retrieval.tune import (
    TuningExamples,
    recall,
    stand_in_queries,
    stand_in_thresholds,
    tune,
)
from pebr_tf.retrieval.vectors import item_ids, unit_vectors

# Queries to tune on, besides those of the check.
TUNING_QUERIES = 500
# Attempts to reach `check_recall` on the check queries; each permits a quarter of the last loss.
ATTEMPTS = 4


def build_index(
    directory: Path,
    vectors: Any,
    ids: Any = None,
    config: Index | None = None,
    queries: Any = None,
    thresholds: Any = None,
    background_sample: int = BACKGROUND_SAMPLE,
    progress: Callable[[str], None] = lambda step: None,
) -> IndexManifest:
    """Writes an index of item vectors [N, n] into a new folder; a failed build leaves nothing.

    Catalogues below `config.exact_below` are searched exactly. Larger ones get about 2 sqrt(N)
    leaves and are tuned to `config.recall_target` on one part of the queries. The other part is
    stored with its exact results; recall on it is measured here and on every load.

    Args:
      directory: A new or empty folder.
      vectors: [N, n] item vectors, scaled to length 1 unless they have it.
      ids: [N] different integers or texts; None numbers the items from 0.
      config: The `index` section of the configuration.
      queries: [Q, n] vectors of real queries; None takes items with noise.
      thresholds: [Q] their thresholds; None takes some that give from 1 to some thousand items.
      background_sample: Size of the sample that represents the catalogue.
      progress: Called with a short text before each step.

    Returns:
      The manifest that was written.

    Raises:
      ValueError: A vector that is not finite or of length zero, a repeated id, or queries that do
        not fit; the text names the positions.
      FileExistsError: The folder is not empty.
    """
    config = config or Index()
    vectors = unit_vectors("vectors", vectors)
    ids = item_ids(ids, len(vectors))
    check_positive("background_sample", background_sample)
    if queries is not None:
        queries = unit_vectors("queries", queries, vectors.shape[1])
        if thresholds is not None:
            thresholds = check_thresholds(thresholds, len(queries))
    elif thresholds is not None:
        raise ValueError("thresholds require queries. Received: thresholds alone.")
    small = len(vectors) < max(config.exact_below, scann_files.LEAST_ITEMS)
    with new_directory(directory) as scratch:
        np.save(scratch / IndexManifest.IDS, ids)
        np.save(scratch / IndexManifest.BACKGROUND, sample_of(vectors, background_sample))
        if small:
            progress("writing vectors")
            np.save(scratch / scann_files.VECTORS, vectors)
            content: dict[str, Any] = {"kind": "exact"}
        else:
            content = _build_scann(scratch, vectors, ids, config, queries, thresholds, progress)
        progress("writing checksums")
        manifest = IndexManifest(
            **content,
            items=len(vectors),
            dimension=vectors.shape[1],
            config=dataclasses.asdict(config),
            files=IndexManifest.checksums(scratch),
        )
        manifest.save(scratch)
    return manifest


def leaves_of(count: int) -> int:
    """About 2 sqrt(N), where scanning leaves costs about as much as finding them."""
    return int(max(1, min(2 * round(count**0.5), count // 16)))


def _build_scann(
    scratch: Path,
    vectors: np.ndarray,
    ids: np.ndarray,
    config: Index,
    queries: np.ndarray | None,
    thresholds: np.ndarray | None,
    progress: Callable[[str], None],
) -> dict[str, Any]:
    leaves = min(config.leaves or leaves_of(len(vectors)), len(vectors) // 16)
    leaves = max(leaves, scann_files.LEAST_LEAVES)
    progress(f"training {leaves:,} leaves")
    trained = scann_files.train(
        vectors, scratch, leaves, config.dimensions_per_block, os.cpu_count() or 1
    )
    np.save(scratch / IndexManifest.IDS, ids[trained.order])
    artifact.write_leaves(scratch, trained.leaves)

    progress("answering the tuning queries exactly")
    positions = np.empty(len(vectors), np.int64)
    positions[trained.order] = np.arange(len(vectors))
    exact = ExactSearcher(vectors, positions, checked=True)
    if queries is None or not len(queries):
        queries = stand_in_queries(vectors, TUNING_QUERIES + config.check_queries)
        thresholds = None
    if thresholds is None:
        thresholds = stand_in_thresholds(exact, queries)
    wanted = min(len(queries), TUNING_QUERIES + config.check_queries)
    chosen = np.random.default_rng(0).permutation(len(queries))[:wanted]
    # A single query serves as both.
    checked = min(config.check_queries, (wanted + 1) // 2)
    examples = [
        _examples(exact, queries[part], thresholds[part])
        for part in (chosen[checked % wanted :], chosen[:checked])
    ]

    progress("tuning")
    searcher = ScannSearcher(
        scratch,
        np.arange(len(vectors)),
        trained.leaves,
        exact.background,
        IndexTuning(float(vectors.shape[1])),
        config.max_leaves_searched,
    )
    tokens = np.load(scratch / "tokens.npy", mmap_mode="r")
    held_out, target = examples[1], config.recall_target
    for _ in range(ATTEMPTS):
        tuning = tune(searcher, examples[0], tokens, trained.error, target)
        found = searcher.with_tuning(tuning).search(held_out.queries, held_out.thresholds)
        macro, micro = recall(found, held_out.answers)
        if min(macro, micro) >= config.check_recall:
            break
        # The check queries differ from the few tuning queries: search further.
        target = 1 - (1 - target) / 4
    else:
        raise ValueError(
            f"the index must find check_recall ({config.check_recall}) of the items of queries "
            f"that it was not tuned on. Received: {macro:.4f} macro, {micro:.4f} micro."
        )
    artifact.write_check(scratch, held_out)
    return {
        "kind": "scann",
        "leaves": leaves,
        "quantisation_error": trained.error,
        "tuning": vars(tuning),
        "recall": {"macro": macro, "micro": micro, "queries": len(held_out)},
    }


def _examples(exact: ExactSearcher, queries: np.ndarray, thresholds: np.ndarray) -> TuningExamples:
    answers = exact.search(queries, thresholds)
    # A search need not find what the limit cuts: the threshold rises to the last item.
    last = answers.scores[answers.row_splits[1:] - 1] if len(answers.scores) else thresholds
    raised = np.where(answers.truncated, last, thresholds)
    return TuningExamples(queries, raised, answers)
