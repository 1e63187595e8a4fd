"""The Beam part: catalogue in, shards of vectors out; held-out clicks in, a sample of queries out.

Nothing but names of shards and a few hundred queries comes back through Beam.
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
from components.index_builder.towers import Towers

# Examples that the towers embed at once.
BATCH = 2_048
# Batches of a shard at most: 32 MB of vectors of 128 dimensions, held in memory.
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
    """Embeds every example of some files; writes shards to `folder`, their names to `names`.

    Args:
      pipeline: Where the transforms go.
      files: Gzip TFRecords of the catalogue.
      model: Folder of the towers' SavedModel.
      payload_columns: Columns of text to keep.
      folder: Of the shards; exists.
      names: A JSON file, written at last.
    """
    _ = (
        pipeline
        | "CatalogueFiles" >> beam.Create(files)
        | "SpreadCatalogueFiles" >> beam.Reshuffle()
        | "ReadCatalogue" >> beam.FlatMap(read_batches)
        # A gzip file is read by one worker; all of them shall embed.
        | "SpreadItems" >> beam.Reshuffle()
        | "EmbedItems" >> beam.ParDo(EmbedItems(model, tuple(payload_columns), folder))
        | "CollectShards" >> beam.combiners.ToList()
        | "WriteShards" >> beam.Map(_write_names, names)
    )


def read_batches(file: str) -> Iterator[list[bytes]]:
    """The serialized examples of a gzip TFRecord file, several at a time.

    TensorFlow reads them rather than Beam, whose own reader is a Python loop over records.
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
        """Loads the towers, once for all threads of the process."""
        model, payload_columns = self._model, self._payload_columns
        self._towers = self._shared.acquire(lambda: Towers(model, payload_columns))

    def start_bundle(self) -> None:
        """Nothing is carried over from a bundle that failed."""
        self._batches: list[pa.RecordBatch] = []

    def process(self, element: Sequence[bytes]) -> Iterator[str]:
        """Embeds a batch."""
        vectors, columns = self._towers.embed_items(element)
        self._batches.append(shards.record_batch(vectors, columns, self._payload_columns))
        if len(self._batches) == SHARD_BATCHES:
            yield self._write()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Writes what is left."""
        if self._batches:
            window = GlobalWindow()
            yield WindowedValue(self._write(), window.max_timestamp(), [window])

    def _write(self) -> str:
        batches, self._batches = self._batches, []
        return shards.write_shard(self._folder, batches)


def sample_queries(pipeline: beam.Pipeline, files: Sequence[str], count: int, path: str) -> None:
    """Writes `count` different queries at most, as a JSON list; the same for the same clicks.

    Args:
      pipeline: Where the transforms go.
      files: Gzip TFRecords of clicks.
      count: Those with the least hashes are taken: a uniform sample, however the clicks are dealt.
      path: The JSON file.
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
    """The different queries of some clicks, with their hashes."""
    parsed = tf.io.parse_example(tf.constant(serialized, tf.string), _QUERY)
    queries = set(parsed["query"].numpy().tolist())
    return [(hashlib.blake2b(query, digest_size=8).digest(), query) for query in queries]


class LeastHashes(beam.CombineFn):
    """Lists of hashed queries -> the `count` different ones with the least hashes, in order."""

    def __init__(self, count: int):
        self._count = count

    def create_accumulator(self) -> list[Hashed]:
        """No query."""
        return []

    def add_input(self, mutable_accumulator: list[Hashed], element: list[Hashed]) -> list[Hashed]:
        """The least of both."""
        return self.merge_accumulators([mutable_accumulator, element])

    def merge_accumulators(self, accumulators: Iterable[list[Hashed]]) -> list[Hashed]:
        """The least of all."""
        return sorted(set(itertools.chain.from_iterable(accumulators)))[: self._count]

    def extract_output(self, accumulator: list[Hashed]) -> list[Hashed]:
        """As it is."""
        return accumulator


def _write_names(names: list[str], path: str) -> None:
    shards.write_json(path, sorted(names))


def _write_queries(least: list[Hashed], path: str) -> None:
    shards.write_json(path, [query.decode() for _, query in least])
