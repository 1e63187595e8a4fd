"""Draws clicks on a world in chunks: memory does not grow with their number."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pebr_tf.data.synthetic.spec import SyntheticSpec
from pebr_tf.data.synthetic.text import item_ids
from pebr_tf.data.synthetic.world import CLICK_STREAM, World, random_stream

CHUNK_CLICKS = 1_000_000
END_TIME = 1_735_689_600  # 2025-01-01 00:00:00 UTC; the last click is before it.
DAYS = 60
START_TIME = END_TIME - DAYS * 86_400

_DAY_MINUTES = 1_440
_QUIET_MINUTE = 4 * 60  # The night's low; the high is half a day away.
_DAILY_SWING = 0.7


@dataclass(frozen=True)
class ClickColumns:
    """A chunk of clicks [n] in numbers, in the order of time (seconds since the epoch, UTC).

    `is_noise` marks items that were drawn from the whole catalogue.
    """

    query: npt.NDArray[np.int32]
    item: npt.NDArray[np.int32]
    timestamp: npt.NDArray[np.int64]
    is_noise: npt.NDArray[np.bool_]


class ClickSampler:
    """Draws clicks: a query by popularity, then one of its relevant items by popularity.

    Memory: 8 bytes per relevant pair for the cumulative weights, and about 200 bytes per click of
    one chunk.
    """

    def __init__(self, world: World, spec: SyntheticSpec):
        self._world = world
        self._spec = spec
        self._query_cumulative = np.cumsum(world.queries.popularity)
        pair_weight = world.catalogue.popularity[world.queries.item_indices]
        # In place: this is the largest array of a large world.
        self._pair_cumulative = np.cumsum(pair_weight, out=pair_weight)
        minute = np.arange(_DAY_MINUTES)
        activity = 1.0 - _DAILY_SWING * np.cos(2 * np.pi * (minute - _QUIET_MINUTE) / _DAY_MINUTES)
        self._minute_cumulative = np.cumsum(activity)

    def __len__(self) -> int:
        return -(-self._spec.clicks // CHUNK_CLICKS)

    def chunk(self, number: int) -> ClickColumns:
        """Draws one chunk; it depends on its number and size, not on the other chunks."""
        size = min(CHUNK_CLICKS, self._spec.clicks - number * CHUNK_CLICKS)
        generator = random_stream(self._spec.seed, CLICK_STREAM, number)
        query = _draw(self._query_cumulative, generator, size)
        item = self._relevant_item(query, generator)
        is_noise = generator.random(size) < self._spec.noise
        item[is_noise] = generator.integers(
            len(self._world.catalogue), size=np.count_nonzero(is_noise), dtype=np.int32
        )
        return ClickColumns(query, item, self._timestamps(size, generator), is_noise)

    def table(self, columns: ClickColumns) -> pa.Table:
        """The log rows of a chunk: query, item_id, clicks (1) and timestamp."""
        return pa.table(
            {
                "query": self._world.queries.texts.take(pa.array(columns.query)),
                "item_id": item_ids(columns.item, len(self._world.catalogue)),
                "clicks": np.ones(len(columns.query), np.int64),
                "timestamp": columns.timestamp,
            }
        )

    def _relevant_item(self, query: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        queries = self._world.queries
        first = queries.row_splits[query]
        last = queries.row_splits[query + 1] - 1
        # One cumulative array holds all queries: each is the stretch between its two sums.
        high = self._pair_cumulative[last]
        low = np.where(first > 0, self._pair_cumulative[first - 1], 0.0)
        target = low + generator.random(len(query)) * (high - low)
        pair = np.searchsorted(self._pair_cumulative, target, side="right")
        # Rounding may put a target on the very edge of its stretch.
        return queries.item_indices[np.clip(pair, first, last)]

    def _timestamps(self, size: int, generator: np.random.Generator) -> np.ndarray:
        minute = _draw(self._minute_cumulative, generator, size)
        day = generator.integers(DAYS, size=size)
        second = generator.integers(60, size=size)
        timestamp = START_TIME + day * 86_400 + minute * 60 + second
        # Clicks are independent of their time, so sorting the times alone sorts the log.
        timestamp.sort()
        return timestamp


def click_chunks(world: World, spec: SyntheticSpec) -> Iterator[pa.Table]:
    """The click log in tables of at most `CHUNK_CLICKS` rows; see `ClickSampler.table`."""
    sampler = ClickSampler(world, spec)
    for number in range(len(sampler)):
        yield sampler.table(sampler.chunk(number))


def _draw(cumulative: np.ndarray, generator: np.random.Generator, size: int) -> np.ndarray:
    target = generator.random(size) * cumulative[-1]
    place = np.searchsorted(cumulative, target, side="right")
    return np.minimum(place, len(cumulative) - 1).astype(np.int32)
