"""Items added, replaced and removed without a rebuild."""

from __future__ import annotations

import functools
import hashlib
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pebr_tf.files import replacing_file
from pebr_tf.retrieval.exact import ExactSearcher
from pebr_tf.retrieval.result import RangeResult, concatenate, empty, merge, take_rows
from pebr_tf.retrieval.searcher import Request, Searcher, VectorSearcher
from pebr_tf.retrieval.vectors import item_ids, refuse_rows, unit_vectors

# Items asked of the base beyond what a row needs, in case as many of them are dead. A row that
# lost more asks again, for GROWTH times as many, and in the end for one a dead item.
FIRST_EXTRA = 64
GROWTH = 16
# Vectors of the base that its checksum covers: enough to tell one model's vectors from another's.
CHECKSUM_VECTORS = 64


@dataclass(frozen=True)
class Snapshot:
    """All that updates change; never modified, so that a search reads one state from end to end.

    Attributes:
      side: The items that were added or replaced.
      dead: [D] sorted ids that the base holds and must not answer with: removed or replaced.
    """

    side: ExactSearcher
    dead: np.ndarray


class UpdatableSearcher(Searcher):
    """A base index, and beside it a small exact segment with what changed since the base was built.

    Answers are those of a fresh build from the live items, as far as the base's own are. An update
    copies the side segment, so give many items in one call. A search costs the base's plus an exact
    one of the side segment: fold `items` into a new build before that is large.

    Searches and updates may run at the same time; a search sees the whole of an update or nothing.
    """

    def __init__(self, base: Searcher):
        """Makes the searcher.

        Args:
          base: A `VectorSearcher`, exact or ScaNN: an index that can list its items.

        Raises:
          ValueError: The base cannot list its items.
        """
        if not isinstance(base, VectorSearcher):
            raise ValueError(
                f"base must have ids and vectors. Received: {type(base).__name__}, without."
            )
        self._base = base
        self._lock = threading.Lock()
        self._snapshot = Snapshot(
            side=side_segment(
                np.empty(0, base.id_dtype), np.empty((0, base.dimension), np.float32)
            ),
            dead=np.empty(0, base.id_dtype),
        )

    @property
    def dimension(self) -> int:
        return self._base.dimension

    @property
    def id_dtype(self) -> np.dtype:
        side = self._snapshot.side
        return side.id_dtype if len(side) else self._base.id_dtype

    @property
    def background(self) -> np.ndarray:
        """[M, n] sample of the base, as it was built: the next build refreshes it.

        An empty base has none; the sample is then of the side segment.
        """
        return self._base.background if len(self._base) else self._snapshot.side.background

    @property
    def pending(self) -> int:
        """The items that the next build has to add, replace or remove."""
        snapshot = self._snapshot
        replaced = np.count_nonzero(np.isin(snapshot.dead, snapshot.side.ids))
        return len(snapshot.side) + len(snapshot.dead) - int(replaced)

    def __len__(self) -> int:
        snapshot = self._snapshot
        return len(self._base) - len(snapshot.dead) + len(snapshot.side)

    def upsert(self, ids: Any, vectors: Any) -> None:
        """Adds items, and replaces those whose ids are known.

        Args:
          ids: [M] different ids of the base's kind, integers or texts; of texts any length.
          vectors: [M, n] vectors, scaled to length 1 unless they have it.

        Raises:
          ValueError: A vector that is not finite, of length zero or of another dimension; an id of
            another kind or twice. Nothing is changed.
        """
        vectors = unit_vectors("vectors", vectors, self.dimension)
        ids = self._checked_ids(ids, len(vectors))
        with self._lock:
            side, dead = self._snapshot.side, self._snapshot.dead
            kept = ~np.isin(side.ids, ids)
            self._snapshot = Snapshot(
                side=side_segment(
                    np.concatenate([side.ids[kept], ids]),
                    np.concatenate([side.vectors[kept], vectors]),
                ),
                dead=self._with_dead(dead, ids[contains(self._sorted_base_ids, ids)]),
            )

    def remove(self, ids: Any) -> None:
        """Removes items.

        Args:
          ids: [M] different ids of items.

        Raises:
          ValueError: An id that is not in the index, of another kind or twice. Nothing is changed.
        """
        ids = self._checked_ids(ids, np.size(ids))
        with self._lock:
            side, dead = self._snapshot.side, self._snapshot.dead
            in_side = np.isin(ids, side.ids)
            in_base = contains(self._sorted_base_ids, ids) & ~contains(dead, ids)
            refuse_rows("ids", "be in the index", ~(in_side | in_base), values=ids)
            kept = ~np.isin(side.ids, ids)
            self._snapshot = Snapshot(
                side=side_segment(side.ids[kept], side.vectors[kept]),
                dead=self._with_dead(dead, ids[in_base]),
            )

    def items(self) -> tuple[np.ndarray, np.ndarray]:
        """Ids [N] and unit vectors [N, n] of all live items, for the next build."""
        snapshot = self._snapshot
        live = ~contains(snapshot.dead, self._base.ids)
        return (
            np.concatenate([self._base.ids[live], snapshot.side.ids]),
            np.concatenate([self._base.vectors[live], snapshot.side.vectors]),
        )

    def save(self, path: Path) -> None:
        """Writes the updates, and what tells their base from another, as a NumPy .npz file."""
        snapshot = self._snapshot
        with replacing_file(path) as temporary, temporary.open("wb") as file:
            np.savez(
                file,
                ids=snapshot.side.ids,
                vectors=snapshot.side.vectors,
                dead=snapshot.dead,
                base_items=np.int64(len(self._base)),
                base_checksum=np.str_(self.base_checksum()),
            )

    def base_checksum(self) -> str:
        """SHA-256 in hexadecimal of the base's ids and of some of its vectors."""
        ids, vectors = self._base.ids, self._base.vectors
        if ids.dtype.kind == "U":
            # The same texts may come in a wider dtype.
            width = max(1, np.char.str_len(ids).max(initial=0))
            ids = ids.astype(f"<U{width}")
        chosen = np.linspace(0, max(0, len(ids) - 1), min(len(ids), CHECKSUM_VECTORS))
        digest = hashlib.sha256(ids.tobytes())
        digest.update(vectors[chosen.astype(np.int64)].tobytes())
        return digest.hexdigest()

    @functools.cached_property
    def _sorted_base_ids(self) -> np.ndarray:
        """[N] ids of the base; made at the first update, since many a base never has one."""
        return np.sort(self._base.ids)

    def _checked_ids(self, ids: Any, count: int) -> np.ndarray:
        """Ids [count] of the base's kind, each once."""
        # None, which elsewhere numbers the items, has no meaning for an update.
        checked = item_ids(np.asarray(ids), count)
        wanted = self._base.id_dtype
        if count and checked.dtype.kind != wanted.kind:
            kind = "text" if wanted.kind == "U" else "integers"
            raise ValueError(f"ids must be {kind}, as in the index. Received: {checked.dtype}.")
        return checked if count else checked.astype(wanted)

    def _with_dead(self, dead: np.ndarray, more: np.ndarray) -> np.ndarray:
        """Sorted ids of `dead` and `more`, all of them ids of the base."""
        return np.union1d(dead, more.astype(self._base.id_dtype))

    def _live_share(self, snapshot: Snapshot) -> np.float32:
        """The share of the base's items, of which there is at least one, that are live."""
        return np.float32(1 - len(snapshot.dead) / len(self._base))

    def _expected_count(self, queries: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """The base's prediction for its live share, and the side segment's."""
        snapshot = self._snapshot
        expected = np.zeros(len(queries), np.float32)
        if len(snapshot.dead) < len(self._base):
            expected += self._base._expected_count(queries, thresholds) * self._live_share(snapshot)
        if len(snapshot.side):
            expected += snapshot.side._expected_count(queries, thresholds)
        return expected

    def _search(self, request: Request) -> RangeResult:
        snapshot = self._snapshot
        parts = []
        if len(snapshot.dead) < len(self._base):
            found = self._search_base(request, snapshot.dead)
            expected = found.expected_counts * self._live_share(snapshot)
            parts.append(replace(found, expected_counts=expected))
        if len(snapshot.side):
            parts.append(snapshot.side._search(request))
        if not parts:
            # The last item was removed after `search` had seen that there is one.
            return empty(len(request), request.thresholds, self.id_dtype)
        return merge(parts, request.top_k, request.max_results)

    def _search_base(self, request: Request, dead: np.ndarray) -> RangeResult:
        """The base's live items, at least as many as `merge` needs to fill and to flag a row.

        The base is asked by top_k, so that the flags it raises are about its work and not about a
        cap that is not the caller's; one item more than the caller's cap shows where that cuts.
        """
        if not len(dead):
            return self._base._search(request)
        needed = request.limit + request.cap_binds
        extra = min(len(dead), FIRST_EXTRA)
        result, short = self._ask_base(request, dead, needed, extra)
        while len(short) and extra < len(dead):
            extra = min(len(dead), extra * GROWTH)
            again = replace(
                request, queries=request.queries[short], thresholds=request.thresholds[short]
            )
            more, still_short = self._ask_base(again, dead, needed, extra)
            source = np.arange(len(request))
            source[short] = len(request) + np.arange(len(short))
            result = take_rows(concatenate([result, more]), source)
            short = short[still_short]
        return result

    def _ask_base(
        self, request: Request, dead: np.ndarray, needed: int, extra: int
    ) -> tuple[RangeResult, np.ndarray]:
        """The live among the best needed + extra items, and the rows where more may be live."""
        asked = min(needed + extra, len(self._base))
        found = self._base._search(replace(request, top_k=asked, max_results=asked))
        live = found.keep(~contains(dead, found.item_ids))
        all_seen = (found.counts < asked) | (asked == len(self._base))
        return live, np.flatnonzero(~all_seen & (live.counts < needed))


def load_updates(base: Searcher, path: Path) -> UpdatableSearcher:
    """The base with the updates that `UpdatableSearcher.save` wrote.

    Raises:
      FileNotFoundError: There is no such file.
      ValueError: The file is damaged, or its updates are of another base.
    """
    searcher = UpdatableSearcher(base)
    damaged = f"{path} must be a whole file of updates. Received: a damaged or another file."
    with Path(path).open("rb") as file:
        try:
            with np.load(file, allow_pickle=False) as stored:
                ids, vectors, dead = stored["ids"], stored["vectors"], stored["dead"]
                items, checksum = int(stored["base_items"]), str(stored["base_checksum"])
        # A damaged zip directory or array header raises almost anything.
        except Exception as error:
            raise ValueError(damaged) from error
    if items != len(base) or checksum != searcher.base_checksum():
        raise ValueError(
            f"{path} must hold updates of this base of {len(base)} items. "
            f"Received: those of another base, of {items} items."
        )
    try:
        searcher.remove(dead)
        searcher.upsert(ids, vectors)
    except ValueError as error:
        raise ValueError(damaged) from error
    return searcher


def side_segment(ids: np.ndarray, vectors: np.ndarray) -> ExactSearcher:
    """A searcher of ids and vectors that were checked before."""
    return ExactSearcher(vectors, ids, checked=True)


def contains(sorted_ids: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """[M] whether each of `ids` [M] is among `sorted_ids`, which may be many and are not copied."""
    if not len(sorted_ids):
        return np.zeros(len(ids), bool)
    # NumPy would widen all of `sorted_ids` to compare with longer texts. A text that is cut here
    # differs from the one at its place.
    places = np.searchsorted(sorted_ids, ids.astype(sorted_ids.dtype, copy=False))
    return sorted_ids[np.minimum(places, len(sorted_ids) - 1)] == ids
