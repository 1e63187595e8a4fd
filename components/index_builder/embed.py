"""The Beam graph: embeds the catalogue into shards of vectors, and samples held-out queries.

Only names of shards and a few hundred queries come back through Beam.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence

import apache_beam as beam
import pyarrow as pa
import tensorflow as tf
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.shared import Shared
from apache_beam.utils.windowed_value import WindowedValue

from components.index_builder import shards
from components.index_builder.towers import TowersModel

# Examples per call of the towers.
BATCH = 2_048
# Most batches per shard: 32 MB of vectors of 128 dimensions, held in memory.
SHARD_BATCHES = 32
_QUERY = {"query": tf.io.FixedLenFeature([], tf.string)}
Hashed = tuple[bytes, bytes]


def embed_catalogue(
    pipeline: beam.Pipeline,
    files: Sequence[str],
    model: str,
    payload_columns: Sequence[str],
    folder: str,
    names: str,
) -> None:
    """Embeds the catalogue; writes shards to `folder` and their names to the file `names`.

    `files` are gzip TFRecords, and `folder` exists. `names` is written last, as JSON.
    """
    _ = (
        pipeline
        | "CatalogueFiles" >> beam.Create(files)
        | "SpreadCatalogueFiles" >> beam.Reshuffle()
        | "ReadCatalogue" >> beam.FlatMap(read_batches)
        # One worker reads a gzip file; all workers embed its items.
        | "SpreadItems" >> beam.Reshuffle()
        | "EmbedItems" >> beam.ParDo(EmbedItems(model, tuple(payload_columns), folder))
        | "CollectShards" >> beam.combiners.ToList()
        | "WriteShards" >> beam.Map(_write_names, names)
    )


def read_batches(file: str) -> Iterator[list[bytes]]:
    """Batches of the serialized examples of a gzip TFRecord file.

    TensorFlow reads them because Beam's reader is a Python loop over records.
    """
    for batch in tf.data.TFRecordDataset(file, "GZIP").batch(BATCH):
        yield batch.numpy().tolist()


class EmbedItems(beam.DoFn):
    """Batches of serialized examples -> names of the shards that hold their vectors."""

    def __init__(self, model: str, payload_columns: tuple[str, ...], folder: str):
        self._model = model
        self._payload_columns = payload_columns
        self._folder = folder
        self._shared = Shared()

    def setup(self) -> None:
        # Once for all threads of the process.
        model, payload_columns = self._model, self._payload_columns
        self._towers = self._shared.acquire(lambda: TowersModel(model, payload_columns))

    def start_bundle(self) -> None:
        self._batches: list[pa.RecordBatch] = []

    def process(self, element: Sequence[bytes]) -> Iterator[str]:
        vectors, columns = self._towers.embed_items(element)
        self._batches.append(shards.record_batch(vectors, columns, self._payload_columns))
        if len(self._batches) == SHARD_BATCHES:
            yield self._write()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        if self._batches:
            window = GlobalWindow()
            yield WindowedValue(self._write(), window.max_timestamp(), [window])

    def _write(self) -> str:
        batches, self._batches = self._batches, []
        return shards.write_shard(self._folder, batches)


def sample_queries(pipeline: beam.Pipeline, files: Sequence[str], count: int, path: str) -> None:
    """Writes at most `count` different queries as a JSON list; the same for the same clicks.

    The queries with the least hashes are taken: a uniform sample that does not depend on the
    bundles.
    """
    _ = (
        pipeline
        | "ClickFiles" >> beam.Create(files)
        | "SpreadClickFiles" >> beam.Reshuffle()
        | "ReadClicks" >> beam.FlatMap(read_batches)
        | "HashQueries" >> beam.Map(hashed_queries)
        | "LeastHashes" >> beam.CombineGlobally(LeastHashes(count))
        | "WriteQueries" >> beam.Map(_write_queries, path)
    )


def hashed_queries(serialized: Sequence[bytes]) -> list[Hashed]:
    """The different queries of serialized clicks, with their hashes."""
    parsed = tf.io.parse_example(tf.constant(serialized, tf.string), _QUERY)
    queries = set(parsed["query"].numpy().tolist())
    return [(hashlib.blake2b(query, digest_size=8).digest(), query) for query in queries]


class LeastHashes(beam.CombineFn):
    """Lists of hashed queries -> the `count` different ones with the least hashes, in order."""

    def __init__(self, count: int):
        self._count = count

    def create_accumulator(self) -> list[Hashed]:
        return []

    def add_input(self, mutable_accumulator: list[Hashed], element: list[Hashed]) -> list[Hashed]:
        return self.merge_accumulators([mutable_accumulator, element])

    def merge_accumulators(self, accumulators: Iterable[list[Hashed]]) -> list[Hashed]:
        return sorted(set(itertools.chain.from_iterable(accumulators)))[: self._count]

    def extract_output(self, accumulator: list[Hashed]) -> list[Hashed]:
        return accumulator


def _write_names(names: list[str], path: str) -> None:
    shards.write_json(path, sorted(names))


def _write_queries(least: list[Hashed], path: str) -> None:
    shards.write_json(path, [query.decode() for _, query in least])
