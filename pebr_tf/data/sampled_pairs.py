"""The clicks of a sample of queries: what calibration and evaluation read of a log of any size."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pebr_tf import storage
from pebr_tf.data.item_places import fast_hashes
from pebr_tf.data.splits import NAMES
from pebr_tf.errors import UserError

FILE = "pairs.parquet"
# Ten pairs for each of 200,000 queries, of which a tenth is in each held-out split.
MOST_PAIRS = 2_000_000
_LAST = 2**64 - 1
_KEYS = ["split", "query", "item_id"]
# Large: a column may have more than 2 GiB.
_SCHEMA = pa.schema(
    [
        ("split", pa.int8()),
        ("query", pa.large_string()),
        ("item_id", pa.large_string()),
        ("clicks", pa.int64()),
    ]
)


@dataclass(frozen=True)
class SampledPairs:
    """All clicked pairs of the queries whose hashes are at most `last`.

    These are as many queries as have `MOST_PAIRS` pairs, or all. Which ones does not depend on how
    the log is divided and merged.

    Attributes:
      pairs: Columns `split` (index into NAMES), `query`, `item_id` and `clicks`; once each when
        they are merged.
      clicks: [3] clicks of each split of the whole log.
    """

    pairs: pa.Table
    clicks: np.ndarray
    last: int = _LAST

    def __len__(self) -> int:
        return len(self.pairs)

    @classmethod
    def of(cls, clicks: pa.RecordBatch, assigned: np.ndarray) -> SampledPairs:
        """The pairs of clicks [M] in the splits `assigned` [M], not merged."""
        columns = [pa.array(assigned), *(clicks.column(name) for name in _SCHEMA.names[1:])]
        table = pa.table(columns, _SCHEMA.names).cast(_SCHEMA)
        counts = clicks.column("clicks").to_numpy()
        sums = [counts[assigned == number].sum() for number in range(len(NAMES))]
        return cls(table.filter(pc.greater(table["clicks"], 0)), np.array(sums, np.int64))

    @classmethod
    def merged(cls, parts: Iterable[SampledPairs]) -> SampledPairs:
        """The pairs of all parts of a log."""
        parts = [cls(_SCHEMA.empty_table(), np.zeros(len(NAMES), np.int64)), *parts]
        last = min(part.last for part in parts)
        table = _up_to(pa.concat_tables([part.pairs for part in parts]), last)[0]
        summed = table.group_by(_KEYS).aggregate([("clicks", "sum")])
        table = pa.table([summed[name] for name in (*_KEYS, "clicks_sum")], schema=_SCHEMA)
        table, hashes = _up_to(table, last)
        if len(table) > MOST_PAIRS:
            last = int(np.partition(hashes, MOST_PAIRS)[MOST_PAIRS]) - 1
            table, _ = _up_to(table, last)
        return cls(table, np.sum([part.clicks for part in parts], axis=0), last)

    def of_split(self, split: str) -> pa.Table:
        """The columns `query`, `item_id` and `clicks` of a split."""
        chosen = pc.equal(self.pairs["split"], NAMES.index(split))
        return self.pairs.filter(chosen).drop(["split"])

    def clicks_of(self, split: str) -> int:
        """The clicks of a split of the whole log."""
        return int(self.clicks[NAMES.index(split)])

    def save(self, directory: str | Path) -> None:
        """Writes the pairs into an artifact of examples, local or remote."""
        table = self.pairs.sort_by([(name, "ascending") for name in _KEYS])
        table = table.replace_schema_metadata({"clicks": json.dumps(self.clicks.tolist())})
        sink = io.BytesIO()
        pq.write_table(table, sink)
        storage.write_bytes(f"{directory}/{FILE}", sink.getvalue())

    @classmethod
    def load(cls, directory: str | Path) -> SampledPairs:
        """Reads the pairs of an artifact of examples."""
        path = f"{directory}/{FILE}"
        try:
            table = pq.read_table(io.BytesIO(storage.read_bytes(path)))
            clicks = json.loads(table.schema.metadata[b"clicks"])
        except (OSError, KeyError, TypeError, pa.ArrowException) as error:
            raise UserError(f"{path} must hold pairs of the log. Received: {error}.") from None
        return cls(table, np.array(clicks, np.int64))


def _up_to(table: pa.Table, last: int) -> tuple[pa.Table, np.ndarray]:
    """The rows of queries whose hashes are at most `last`, and the hashes of these rows."""
    chunks = map(fast_hashes, table["query"].chunks)
    hashes = np.concatenate([np.empty(0, np.uint64), *chunks])
    kept = hashes <= np.uint64(last)
    return table.filter(pa.array(kept)), hashes[kept]
