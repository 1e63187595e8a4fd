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

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from pebr_tf.errors import UserError
from pebr_tf.retrieval import scann_files
from pebr_tf.retrieval.exact import ExactSearcher
from pebr_tf.retrieval.plan import IndexTuning, Leaves
from pebr_tf.retrieval.result import RangeResult, empty
from pebr_tf.retrieval.scann_searcher import ScannSearcher
from pebr_tf.retrieval.tune import TuningExamples, recall

FORMAT = 1
MANIFEST = "index.json"


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
    """Stores the statistics of the leaves."""
    np.save(directory / "centroids.npy", leaves.centroids)
    np.save(directory / "leaves.npy", np.stack([leaves.sizes, leaves.spreads]))
    np.save(directory / "scatter.npy", leaves.scatter)


def read_leaves(directory: Path) -> Leaves:
    """Reads what `write_leaves` stored."""
    sizes, spreads = np.load(directory / "leaves.npy")
    centroids, scatter = (np.load(directory / f"{name}.npy") for name in ("centroids", "scatter"))
    return Leaves(centroids, sizes, spreads, scatter)


def write_manifest(directory: Path, content: dict[str, Any]) -> dict[str, Any]:
    """Writes index.json with a checksum of every file that is there."""
    files = {path.name: checksum(path) for path in sorted(directory.iterdir())}
    manifest = {"format": FORMAT, **content, "files": files}
    (directory / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return manifest


def checksum(path: Path) -> str:
    """SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


def load_index(directory: Path, verify: bool = True) -> ExactSearcher | ScannSearcher:
    """Opens an index folder.

    Args:
      directory: What `build_index` wrote.
      verify: Compare checksums, and search for the stored queries.

    Raises:
      UserError: Not an index, another format, a file that is missing or has changed, or recall on
        the stored queries below `check_recall`.
    """
    directory = Path(directory).absolute()
    manifest = read_manifest(directory)
    if verify:
        verify_files(directory, manifest)
    ids = np.load(directory / "ids.npy")
    if manifest["kind"] == "exact":
        vectors = np.load(directory / scann_files.VECTORS, mmap_mode="r")
        background = np.load(directory / "background.npy")
        return ExactSearcher(vectors, ids, background=background, checked=True)
    searcher = ScannSearcher(
        directory,
        ids,
        read_leaves(directory),
        np.load(directory / "background.npy"),
        IndexTuning(**manifest["tuning"]),
        manifest["config"]["max_leaves_searched"],
    )
    if verify:
        self_check(directory, searcher, manifest["config"]["check_recall"])
    return searcher


def read_manifest(directory: Path) -> dict[str, Any]:
    """The content of index.json, of a format that this version reads."""
    try:
        manifest = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"{directory} must be an index folder with {MANIFEST}.") from None
    except ValueError as error:
        raise UserError(f"{directory / MANIFEST} must be JSON. Received: {error}.") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        received = manifest.get("format") if isinstance(manifest, dict) else manifest
        raise UserError(
            f"{directory / MANIFEST} must have format {FORMAT}. Received: {received!r}."
        )
    return manifest


def verify_files(directory: Path, manifest: dict[str, Any]) -> None:
    """Rejects a folder in which a file is missing or has changed."""
    for name, expected in manifest["files"].items():
        path = directory / name
        if not path.is_file():
            raise UserError(f"{path} is missing from the index.")
        if (received := checksum(path)) != expected:
            raise UserError(
                f"{path} must have SHA-256 {expected[:12]}... as in {MANIFEST}. "
                f"Received: {received[:12]}..."
            )


def self_check(directory: Path, searcher: ScannSearcher, lowest: float) -> tuple[float, float]:
    """Macro and micro recall on the stored queries; rejects an index below `lowest`."""
    queries, thresholds, row_splits, positions = (
        np.load(directory / f"check_{name}.npy")
        for name in ("queries", "thresholds", "row_splits", "positions")
    )
    truth = RangeResult(
        **{
            **vars(empty(len(queries), thresholds, searcher.ids.dtype)),
            "row_splits": row_splits,
            "item_ids": searcher.ids[positions],
        }
    )
    macro, micro = recall(searcher.search(queries, thresholds), truth)
    if min(macro, micro) < lowest:
        raise UserError(
            f"{directory} must find {lowest} of the items of its own check queries. "
            f"Received: {macro:.4f} macro, {micro:.4f} micro."
        )
    return macro, micro
