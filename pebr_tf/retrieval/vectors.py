"""Validation of item ids and unit vectors."""

from typing import Any

import numpy as np

# A vector whose length is this close to 1 is not scaled. Scaling in float32 gets within 6e-8; a
# wider slack would move a cosine by more than `Searcher.search` permits.
UNIT_SLACK = 1e-7
SHOWN = 5


def unit_vectors(name: str, vectors: Any, dimension: int | None = None) -> np.ndarray:
    """Vectors [M, n] as contiguous float32 of length 1; others are scaled."""
    vectors = np.asarray(vectors)
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
        raise ValueError(
            f"{name} must be numbers of shape [rows, dimension]. "
            f"Received: {vectors.dtype} of shape {vectors.shape}."
        )
    if dimension is not None and vectors.shape[1] != dimension:
        raise ValueError(f"{name} must have dimension {dimension}. Received: {vectors.shape[1]}.")
    vectors = np.ascontiguousarray(vectors, np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    unit = np.abs(lengths - 1) <= UNIT_SLACK
    if unit.all():
        return vectors
    reject_rows(name, "be finite", ~np.isfinite(lengths))
    reject_rows(name, "have a length above zero", lengths == 0)
    return np.where(unit[:, None], vectors, vectors / lengths[:, None]).astype(np.float32)


def item_ids(ids: Any, count: int) -> np.ndarray:
    """Ids [count] as int64 or text, all different; None numbers the items from 0."""
    if ids is None:
        return np.arange(count, dtype=np.int64)
    ids = np.asarray(ids)
    if ids.ndim != 1 or len(ids) != count:
        raise ValueError(
            f"ids must be {count} values, one per vector. Received: shape {ids.shape}."
        )
    if count == 0:
        return ids.astype(np.int64) if ids.dtype.kind != "U" else ids
    if ids.dtype.kind in "iu":
        reject_rows("ids", "be at most 2**63 - 1", ids > np.iinfo(np.int64).max, values=ids)
        ids = ids.astype(np.int64)
    elif ids.dtype.kind != "U":
        raise ValueError(f"ids must be integers or text. Received: {ids.dtype}.")
    unique, first = np.unique(ids, return_index=True)
    if len(unique) != count:
        repeated = np.ones(count, bool)
        repeated[first] = False
        reject_rows("ids", "be different", repeated, values=ids)
    return ids


def reject_rows(
    name: str, requirement: str, at_fault: np.ndarray, values: np.ndarray | None = None
) -> None:
    """Raises ValueError if any row is at fault, naming the first few positions (and values)."""
    positions = np.flatnonzero(at_fault)
    if not len(positions):
        return
    shown = [
        str(position) if values is None else f"{position} ({values[position].item()!r})"
        for position in positions[:SHOWN]
    ]
    more = f" and {len(positions) - SHOWN} more" if len(positions) > SHOWN else ""
    rows = "row" if len(positions) == 1 else "rows"
    raise ValueError(f"{name} must {requirement}. Received: {rows} {', '.join(shown)}{more}.")
