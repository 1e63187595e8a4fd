"""The index folder: plain NumPy files, ScaNN's own files, and a manifest with their checksums.

    index.json          version, kind, tuning, config, measured recall, SHA-256 of every file
    vectors.npy         unit vectors, for ScaNN with the appended 1 and leaf by leaf
    ids.npy             ids in the order of the vectors
    background.npy      the sample that represents the catalogue
    check_*.npy         queries, thresholds and exact results that every load is checked on
    centroids.npy, leaves.npy, scatter.npy              statistics that plans need
    codes.npy, tokens.npy, codebook.pb, partitioner.pb, scann_config.pb     ScaNN's

Nothing is pickled.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from pebr_tf.errors import UserError
from pebr_tf.manifest import FolderManifest
from pebr_tf.retrieval import scann_files
from pebr_tf.retrieval.exact import ExactSearcher
from pebr_tf.retrieval.plan import IndexTuning, Leaves
from pebr_tf.retrieval.result import empty
from pebr_tf.retrieval.scann_searcher import ScannSearcher
from pebr_tf.retrieval.tune import TuningExamples, recall


@dataclass(frozen=True, kw_only=True)
class IndexManifest(FolderManifest):
    """The content of index.json.

    Attributes:
      kind: "exact" or "scann".
      leaves: Number of leaves; this and the following are None for an exact index.
      quantisation_error: Deviation of a quantised cosine from the exact one.
      recall: `macro` and `micro` recall on the check queries, and how many `queries` these are.
    """

    FILE: ClassVar[str] = "index.json"
    IDS: ClassVar[str] = "ids.npy"
    BACKGROUND: ClassVar[str] = "background.npy"
    NOUN: ClassVar[str] = "index"

    kind: str
    items: int
    dimension: int
    config: dict[str, Any]
    leaves: int | None = None
    quantisation_error: float | None = None
    tuning: dict[str, Any] | None = None
    recall: dict[str, Any] | None = None


def write_check(directory: Path, examples: TuningExamples) -> None:
    """Stores queries with their exact results, as positions."""
    arrays = {
        "queries": examples.queries,
        "thresholds": examples.thresholds,
        "row_splits": examples.answers.row_splits,
        "positions": examples.answers.item_ids,
    }
    for name, array in arrays.items():
        np.save(directory / f"check_{name}.npy", array)


def write_leaves(directory: Path, leaves: Leaves) -> None:
    np.save(directory / "centroids.npy", leaves.centroids)
    np.save(directory / "leaves.npy", np.stack([leaves.sizes, leaves.spreads]))
    np.save(directory / "scatter.npy", leaves.scatter)


def read_leaves(directory: Path) -> Leaves:
    sizes, spreads = np.load(directory / "leaves.npy")
    centroids, scatter = (np.load(directory / f"{name}.npy") for name in ("centroids", "scatter"))
    return Leaves(centroids, sizes, spreads, scatter)


def load_index(
    directory: Path, verify: bool = True, checksums: bool = True
) -> ExactSearcher | ScannSearcher:
    """Opens an index folder.

    Args:
      directory: What `build_index` wrote.
      verify: Compare checksums, and search for the stored queries.
      checksums: False skips the checksums, for an index whose files have been verified already.

    Raises:
      UserError: Not an index, another format, a file that is missing or has changed, or recall on
        the stored queries below `check_recall`.
    """
    directory = Path(directory).absolute()
    manifest = IndexManifest.load(directory)
    if verify and checksums:
        manifest.verify(directory)
    ids = np.load(directory / IndexManifest.IDS)
    background = np.load(directory / IndexManifest.BACKGROUND)
    if manifest.tuning is None:
        vectors = np.load(directory / scann_files.VECTORS, mmap_mode="r")
        return ExactSearcher(vectors, ids, background=background, checked=True)
    searcher = ScannSearcher(
        directory,
        ids,
        read_leaves(directory),
        background,
        IndexTuning(**manifest.tuning),
        manifest.config["max_leaves_searched"],
    )
    if verify:
        self_check(directory, searcher, manifest.config["check_recall"])
    return searcher


def self_check(directory: Path, searcher: ScannSearcher, lowest: float) -> tuple[float, float]:
    """Macro and micro recall on the stored queries; rejects an index below `lowest`."""
    queries, thresholds, row_splits, positions = (
        np.load(directory / f"check_{name}.npy")
        for name in ("queries", "thresholds", "row_splits", "positions")
    )
    nothing = empty(len(queries), thresholds, searcher.ids.dtype)
    truth = replace(nothing, row_splits=row_splits, item_ids=searcher.ids[positions])
    macro, micro = recall(searcher.search(queries, thresholds), truth)
    if min(macro, micro) < lowest:
        raise UserError(
            f"{directory} must find {lowest} of the items of its own check queries. "
            f"Received: {macro:.4f} macro, {micro:.4f} micro."
        )
    return macro, micro
