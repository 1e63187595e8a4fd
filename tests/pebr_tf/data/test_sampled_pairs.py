"""The pairs of a sample of queries: whole queries, whatever order the log is merged in."""

import collections

import numpy as np
import pyarrow as pa
import pytest

from pebr_tf.data import sampled_pairs
from pebr_tf.data.sampled_pairs import FILE, SampledPairs
from pebr_tf.data.splits import NAMES
from pebr_tf.errors import UserError

GENERATOR = np.random.default_rng(0)
CLICKS = [
    (int(split), f"q{query}", f"i{item}", int(count))
    for split, query, item, count in zip(
        GENERATOR.integers(3, size=4_000),
        GENERATOR.integers(200, size=4_000),
        GENERATOR.integers(30, size=4_000),
        GENERATOR.integers(3, size=4_000),
        strict=True,
    )
]


def part(rows):
    split, *columns = zip(*rows, strict=True)
    batch = pa.RecordBatch.from_arrays(list(map(pa.array, columns)), ["query", "item_id", "clicks"])
    return SampledPairs.of(batch, np.array(split, np.int8))


def rows_of(sampled):
    return sorted(zip(*sampled.pairs.to_pydict().values(), strict=True))


def counted(queries=None):
    """The clicked pairs of some queries or all, counted one by one."""
    counts = collections.Counter()
    for *key, clicks in CLICKS:
        if clicks and (queries is None or key[1] in queries):
            counts[tuple(key)] += clicks
    return sorted((*key, clicks) for key, clicks in counts.items())


def test_a_small_log_is_there_as_a_whole(tmp_path):
    merged = SampledPairs.merged([part(CLICKS)])
    assert rows_of(merged) == counted()
    merged.save(tmp_path)
    loaded = SampledPairs.load(tmp_path)
    assert rows_of(loaded) == counted()
    for number, name in enumerate(NAMES):
        assert len(loaded.of_split(name)) == sum(row[0] == number for row in counted())
        assert loaded.clicks_of(name) == sum(row[3] for row in CLICKS if row[0] == number)


@pytest.mark.parametrize("pieces", [1, 2, 7])
def test_a_large_log_is_sampled_by_whole_queries_in_any_order(monkeypatch, pieces):
    monkeypatch.setattr(sampled_pairs, "MOST_PAIRS", 500)
    whole = SampledPairs.merged([part(CLICKS)])
    queries = set(whole.pairs["query"].to_pylist())
    assert 400 < len(whole) <= 500
    assert len(queries) < 100
    assert rows_of(whole) == counted(queries)
    assert whole.clicks.tolist() == part(CLICKS).clicks.tolist()
    parts = [SampledPairs.merged([part(CLICKS[at::pieces])]) for at in range(pieces)]
    halves = SampledPairs.merged(parts[::2]), SampledPairs.merged(parts[1::2])
    assert rows_of(SampledPairs.merged(halves)) == rows_of(whole)


def test_no_pair_at_all(tmp_path):
    SampledPairs.merged([]).save(tmp_path)
    assert len(SampledPairs.load(tmp_path).of_split("test")) == 0


def test_a_file_that_is_not_of_pairs(tmp_path):
    (tmp_path / FILE).write_text("no Parquet")
    with pytest.raises(UserError, match=r"pairs\.parquet must hold pairs of the log\. Received: "):
        SampledPairs.load(tmp_path)
