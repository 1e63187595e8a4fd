"""The Beam graph: embeds the catalogue into shards of vectors, whose names come back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.shared import Shared
from apache_beam.utils.windowed_value import WindowedValue

from components.example_files import read_batches
from components.index_builder import shards
from components.towers import TowersModel

# Most batches per shard: 32 MB of vectors of 128 dimensions, held in memory.
SHARD_BATCHES = 32


def embed_catalogue(
    pipeline: beam.Pipeline,
    files: Sequence[str],
    model: str,
    payload_columns: Sequence[str],
    folder: str,
) -> None:
    """Embeds the catalogue; writes shards to `folder`, and then their names.

    `files` are gzip TFRecords, and `folder` exists.
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
        | "WriteShards" >> beam.Map(shards.write_names, folder)
    )


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
            yield GlobalWindows.windowed_value_at_end_of_window(self._write())

    def _write(self) -> str:
        batches, self._batches = self._batches, []
        return shards.write_shard(self._folder, batches)
