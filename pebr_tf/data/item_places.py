"""Finds items by id. The table is made once per worker; a lookup hardly depends on its size."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pebr_tf.data.splits import mixed


class ItemPlaces:
    """The places of item ids [N], which are all different.

    An id is known by its hash of 64 bits: among ten million ids, one unknown id in 10^12 is taken
    for another.
    """

    def __init__(self, ids: pa.Array | pa.ChunkedArray):
        chunks = ids.chunks if isinstance(ids, pa.ChunkedArray) else [ids]
        found = np.concatenate([np.empty(0, np.uint64), *map(fast_hashes, chunks)])
        self._order = np.argsort(found)
        # A last hash that ends every search.
        self._hashes = np.append(found[self._order], np.uint64(2**64 - 1))
        bits = max(len(found).bit_length(), 1)
        self._shift = np.uint64(64 - bits)
        firsts = np.arange(2**bits, dtype=np.uint64) << self._shift
        # The first place of each bucket of about one hash.
        self._begins = np.searchsorted(self._hashes, firsts)

    def __len__(self) -> int:
        return len(self._order)

    def find(self, ids: pa.Array) -> np.ndarray:
        """[M] places of ids [M]; -1 for an id that is not there."""
        wanted = fast_hashes(ids)
        at = self._begins[wanted >> self._shift]
        rows = np.arange(len(wanted))
        while len(rows):
            rows = rows[self._hashes[at[rows]] < wanted[rows]]
            at[rows] += 1
        places = np.append(self._order, -1)[at]
        return np.where(self._hashes[at] == wanted, places, -1)


class ItemColumns:
    """A table of items, and the places of its `item_id`."""

    def __init__(self, items: pa.Table):
        self._places = ItemPlaces(items["item_id"])
        items = items.drop(["item_id"])
        large = [(each.name, _large(each.type)) for each in items.schema]
        # One chunk, of which `take` makes no copy; text in a chunk of its own type has 2 GiB.
        self._items = items.cast(pa.schema(large)).combine_chunks()

    def of(self, item_ids: pa.Array) -> dict[str, pa.Array]:
        """Columns [M] of items [M]; empty text or 0 for an id that is not there."""
        places = self._places.find(item_ids)
        found = {}
        for name in self._items.column_names:
            column = self._items[name].take(pa.array(places, mask=places < 0)).combine_chunks()
            is_text = pa.types.is_large_string(column.type)
            found[name] = column.cast(pa.string()).fill_null("") if is_text else column.fill_null(0)
        return found


def _large(kind: pa.DataType) -> pa.DataType:
    return pa.large_string() if pa.types.is_string(kind) else kind


def fast_hashes(texts: pa.Array) -> np.ndarray:
    """[M] uint64 hashes of texts [M], eight bytes of all texts at a time.

    They are those of one version of the project; `splits.hashes` are for what must never change.
    """
    texts = texts.cast(pa.large_string())
    _, offsets, data = texts.buffers()
    if not len(texts) or data is None:
        return mixed(np.zeros(len(texts), np.uint64))
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    begins, lengths = ends[:-1] - ends[0], np.diff(ends)
    padded = np.zeros(int(ends[-1] - ends[0]) + 8, np.uint8)
    padded[:-8] = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
    # The eight bytes at every position.
    words: np.ndarray = np.ndarray(len(padded) - 7, "<u8", padded, strides=(1,))
    found, rows = mixed(lengths.astype(np.uint64)), np.arange(len(texts))
    for at in range(0, int(lengths.max()), 8):
        rows = rows[lengths[rows] > at]
        unused = 8 - np.minimum(lengths[rows] - at, 8)
        word = words[begins[rows] + at] << (8 * unused).astype(np.uint64)
        found[rows] = mixed(found[rows] ^ word)
    return found
