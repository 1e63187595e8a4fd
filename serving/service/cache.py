"""What a worker keeps of earlier requests: encoded queries, and whole responses.

A worker serves one release, so that nothing has to be forgotten when another takes over. A query is
known by its exact text: which texts mean the same is for the query model to say.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

import numpy as np

from pebr_tf.retrieval.encoded import ENCODED_FIELDS, EncodedQueries
from serving.encoder import Encoder
from serving.retrieval import RetrievalRequest, RetrievalResponse, StageSeconds

# Longer responses cost more memory than time.
MOST_ITEMS = 1_000
VALUE = TypeVar("VALUE")
# Called with the name of a cache, and the numbers of what it had and had not.
Count = Callable[[str, int, int], None]


class LeastRecentlyUsed(Generic[VALUE]):
    """The `size` values that were used last."""

    def __init__(self, size: int):
        self._size = size
        self._values: OrderedDict[Hashable, VALUE] = OrderedDict()

    def get(self, key: Hashable) -> VALUE | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: Hashable, value: VALUE) -> None:
        self._values[key] = value
        if len(self._values) > self._size:
            self._values.popitem(last=False)


class CachedEncoder:
    """Encodes only the queries that it does not keep; for one thread at a time."""

    def __init__(self, encoder: Encoder, size: int, count: Count):
        self._encoder, self._count = encoder, count
        self._kept: LeastRecentlyUsed[EncodedQueries] = LeastRecentlyUsed(size)

    def encode(
        self, queries: Sequence[str], deadline: float = math.inf, with_law: bool = True
    ) -> EncodedQueries:
        """Encodes texts [B]; see `Encoder`."""
        rows = [self._kept.get((query, with_law)) for query in queries]
        missing = list(
            dict.fromkeys(q for q, row in zip(queries, rows, strict=True) if row is None)
        )
        self._count("queries", len(queries) - rows.count(None), rows.count(None))
        new: dict[str, EncodedQueries] = {}
        if missing:
            found = self._encoder.encode(missing, deadline, with_law)
            # Copies: a slice would keep the arrays of its whole batch.
            new = {query: found.take(np.array([place])) for place, query in enumerate(missing)}
            for query, row in new.items():
                self._kept.put((query, with_law), row)
            if len(missing) == len(queries):
                return found
        whole = [
            new[query] if row is None else row for query, row in zip(queries, rows, strict=True)
        ]
        return EncodedQueries(
            **{
                name: np.concatenate([getattr(row, name) for row in whole])
                for name in ENCODED_FIELDS
            }
        )


class ResponseCache:
    """Whole responses, by everything in a request but its deadline."""

    def __init__(self, size: int, count: Count):
        self._count = count
        self._kept: LeastRecentlyUsed[RetrievalResponse] = LeastRecentlyUsed(size)

    def get(self, request: RetrievalRequest) -> RetrievalResponse | None:
        """The response to an equal request, which took no time; None if it is not kept."""
        found = self._kept.get(replace(request, deadline=math.inf))
        self._count("responses", found is not None, found is None)
        return found

    def put(self, request: RetrievalRequest, response: RetrievalResponse) -> None:
        if len(response.items.scores) <= MOST_ITEMS:
            timeless = replace(response, seconds=StageSeconds())
            self._kept.put(replace(request, deadline=math.inf), timeless)
