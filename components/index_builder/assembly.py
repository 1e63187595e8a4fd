"""Assembles the catalogue from the shards, sorted by id and checked."""

import os
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.lib.format import open_memmap

from components.index_builder import shards
from pebr_tf.errors import UserError
from pebr_tf.release.payload import ID_COLUMN
from pebr_tf.retrieval.vectors import unit_vectors

# Vectors that are checked at a time.
BLOCK = 65_536
# Most items or ids that an error lists.
SHOWN = 3
_VECTORS = "vectors.npy"


def gather(folder: str, names: Sequence[str]) -> tuple[pa.Table, np.ndarray]:
    """The whole catalogue sorted by id: ids and payload [N], unit vectors [N, n].

    The vectors are those of a file in `folder`, which must outlive them.

    Raises:
      UserError: An item id occurs twice, or a vector is not finite or has length zero.
    """
    parts = [shards.read_items(folder, name) for name in names]
    items = pa.concat_tables(parts)
    order = pc.sort_indices(items[ID_COLUMN])
    items = items.take(order)
    _reject_duplicates(items[ID_COLUMN])
    positions = np.empty(len(items), np.int64)
    positions[order.to_numpy()] = np.arange(len(items))
    begins = np.cumsum([0, *map(len, parts)])
    vectors: np.ndarray | None = None
    for begin, name in zip(begins[:-1], names, strict=True):
        part = shards.read_vectors(folder, name)
        if vectors is None:
            shape = (len(items), part.shape[1])
            vectors = open_memmap(os.path.join(folder, _VECTORS), "w+", np.float32, shape)
        vectors[positions[begin : begin + len(part)]] = part
    assert vectors is not None, "at least one shard"
    return items, checked_vectors("item", items[ID_COLUMN], vectors)


def checked_vectors(what: str, names: Sequence[object], vectors: np.ndarray) -> np.ndarray:
    """Scales float32 vectors [M, n] in place to length 1; returns them.

    `names` [M] are the names in an error, after `what`: "item" or "query".

    Raises:
      UserError: A vector is not finite or has length zero.
    """
    squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(squares) | (squares == 0))
    if len(bad):
        shown = [
            f"{str(names[row])!r} ({'zero' if squares[row] == 0 else 'not finite'})"
            for row in bad[:SHOWN].tolist()
        ]
        raise UserError(
            f"the model must give every {what} a finite vector of length above zero. "
            f"Received: {_listed(shown, len(bad))}."
        )
    for begin in range(0, len(vectors), BLOCK):
        vectors[begin : begin + BLOCK] = unit_vectors("vectors", vectors[begin : begin + BLOCK])
    return vectors


def _reject_duplicates(ids: pa.ChunkedArray) -> None:
    repeated = np.flatnonzero(pc.equal(ids[1:], ids[:-1]).to_numpy())
    if not len(repeated):
        return
    names = pc.unique(ids.take(pa.array(repeated))).to_pylist()
    raise UserError(
        "the catalogue must have every item_id once. "
        f"Received: more than one {_listed([repr(name) for name in names[:SHOWN]], len(names))}."
    )


def _listed(shown: list[str], count: int) -> str:
    more = f" and {count - SHOWN} more" if count > SHOWN else ""
    return f"{', '.join(shown)}{more}"
