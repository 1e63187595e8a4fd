"""Vocabularies and totals over all texts of training, counted batch by batch.

`tft.vocabulary` sends every word of every batch through Beam as its own element; with n-grams this
takes most of the time of Transform. Here TensorFlow counts the words of a batch, and Beam merges
one dictionary per batch and shard. The files have the format of `tft.vocabulary`.
"""

from __future__ import annotations

import collections
import heapq
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow as tf
import tensorflow_transform as tft
import tensorflow_transform.beam as tft_beam
from tensorflow_transform import tf_utils

from pebr_tf.config import Strata
from pebr_tf.metrics.strata import first_of_strata

# Dictionaries that workers merge in parallel.
SHARDS = 16
# Content of an asset before the data are analysed.
_UNSEEN = b"unseen"

Totals = dict[bytes, float]
Counted = tuple[float, bytes]


def vocabulary(words: tf.Tensor, counts: tf.Tensor, name: str, size: int, least: int) -> tf.Tensor:
    """The path of a file with the most frequent words, sorted by descending count, then by word.

    It has at most `size` of the words [M], without line breaks, whose counts [M] add up to `least`
    or more.
    """
    best = beam.Map(_most_frequent, size, least)
    analyzer = _Analyzer(
        lambda shards, folder: _write_words(shards, f"{folder}/{name}", size), best
    )
    (path,) = tft.experimental.ptransform_analyzer(
        _summed(words, counts), analyzer, [tf.string], [[]], [_UNSEEN], name=name
    )
    return path


def totals(
    keys: tf.Tensor, counted: tf.Tensor, weights: tf.Tensor, name: str, size: int
) -> tf.Tensor:
    """[B] for each of the keys [B] the sum of the weights [M] of equal keys `counted` [M].

    All keys are integers. A key that no text has gets 0, and so does one that is not among the
    `size` with the largest sums.
    """
    words = tf.strings.as_string(counted)
    analyzer = _Analyzer(
        lambda shards, folder: _write_totals(shards, f"{folder}/{name}", size),
        beam.Map(_most_frequent, size, 0),
    )
    (path,) = tft.experimental.ptransform_analyzer(
        _summed(words, weights), analyzer, [tf.string], [[]], [b"0 " + _UNSEEN], name=name
    )
    words = tf.strings.as_string(keys)
    return tf_utils.construct_and_lookup_table(_total_table, path, words)[0]


def strata_of(total: tf.Tensor, keys: tf.Tensor, weights: tf.Tensor, strata: Strata) -> tf.Tensor:
    """[B] int64, the position in STRATA of the stratum of each total [B]."""
    words = tf.strings.as_string(keys)
    # How many queries have each total: far fewer numbers than queries.
    queries = beam.Map(lambda shard: collections.Counter(shard.values()))
    analyzer = _Analyzer(lambda shards, folder: _first_of_strata(shards, strata), queries)
    (first,) = tft.experimental.ptransform_analyzer(
        _summed(words, weights), analyzer, [tf.float32], [[2]], name="strata"
    )
    return tf.reduce_sum(tf.cast(total[:, tf.newaxis] < first, tf.int64), axis=1)


def _summed(words: tf.Tensor, weights: tf.Tensor) -> list[tf.Tensor]:
    different, positions = tf.unique(words)
    return [different, tf.math.unsorted_segment_sum(weights, positions, tf.size(different))]


def _total_table(path: tf.Tensor) -> tf.lookup.StaticHashTable:
    """Maps the second column of lines `total key` to the first."""
    lines = tf.lookup.TextFileInitializer(path, tf.string, 1, tf.float32, 0, delimiter=" ")
    return tf.lookup.StaticHashTable(lines, 0.0)


class _Analyzer(tft_beam.experimental.PTransformAnalyzer):
    """Merges words [M] and their counts [M] of all batches into one result.

    `finish` receives the totals of all shards, and a folder for files, whose names become those of
    assets. `reduce` makes less of the totals of each shard before.
    """

    def __init__(self, finish: Callable[[list[Any], str], np.ndarray], reduce: beam.PTransform):
        super().__init__()
        self._finish, self._reduce = finish, reduce

    def expand(self, batches: beam.PCollection) -> beam.PCollection:
        shards = (
            batches
            | "Shard" >> beam.FlatMap(_sharded)
            | "Merge" >> beam.CombinePerKey(_merged)
            | "Totals" >> beam.Values()
            | self._reduce
        )
        return shards | beam.combiners.ToList() | beam.Map(self._finish, self.base_temp_dir)


def _sharded(batch: tuple[np.ndarray, np.ndarray]) -> Iterator[tuple[int, Totals]]:
    shards: list[Totals] = [{} for _ in range(SHARDS)]
    for word, count in zip(batch[0].tolist(), batch[1].tolist(), strict=True):
        shards[zlib.crc32(word) % SHARDS][word] = count
    return ((number, shard) for number, shard in enumerate(shards) if shard)


def _merged(parts: Iterable[Totals]) -> Totals:
    merged: Totals = {}
    for part in parts:
        for word, count in part.items():
            merged[word] = merged.get(word, 0) + count
    return merged


def _most_frequent(counts: Totals, size: int, least: int) -> list[Counted]:
    enough = ((-count, word) for word, count in counts.items() if count >= least and word)
    return heapq.nsmallest(size, enough)


def _write_words(shards: list[list[Counted]], path: str, size: int) -> np.ndarray:
    # A lookup table cannot read an empty file.
    best = [word for _, word in heapq.nsmallest(size, heapq.merge(*shards))] or [_UNSEEN]
    return _write(path, best)


def _write_totals(shards: list[list[Counted]], path: str, size: int) -> np.ndarray:
    best = heapq.nsmallest(size, heapq.merge(*shards))
    return _write(path, [b"%r %s" % (-count, key) for count, key in best])


def _write(path: str, lines: list[bytes]) -> np.ndarray:
    tf.io.gfile.makedirs(os.path.dirname(path))
    with tf.io.gfile.GFile(path, "wb") as file:
        file.write(b"".join(line + b"\n" for line in lines))
    return np.array(path, object)


def _first_of_strata(shards: list[collections.Counter[float]], strata: Strata) -> np.ndarray:
    counts = sum(shards, collections.Counter())
    clicks, queries = (np.array(list(each)) for each in (counts.keys(), counts.values()))
    return np.array(first_of_strata(clicks, queries, strata), np.float32)
