"""The transform of a few rows, run for real."""

import functools

import apache_beam as beam
import tensorflow as tf
import tensorflow_transform as tft
import tensorflow_transform.beam as tft_beam
from tensorflow_transform.tf_metadata import dataset_metadata, schema_utils

from pebr_tf.config import Features, Strata
from pipeline.preprocessing import preprocessing_fn

TYPES = {"clicks": tf.int64, "price": tf.float32}


@tf.autograph.experimental.do_not_convert
def analysed(rows, folder, **features):
    """The transform output for rows with the same columns.

    Without AutoGraph, which takes longer than the rest; the pipeline runs of tests/e2e have it.
    """
    spec = {name: tf.io.FixedLenFeature([1], TYPES.get(name, tf.string)) for name in rows[0]}
    metadata = dataset_metadata.DatasetMetadata(schema_utils.schema_from_feature_spec(spec))
    settings = {"features": Features(**features).to_mapping(), "strata": Strata().to_mapping()}
    function = functools.partial(preprocessing_fn, custom_config=settings)
    listed = [{name: [value] for name, value in row.items()} for row in rows]
    with beam.Pipeline() as pipeline, tft_beam.Context(temp_dir=str(folder / "temporary")):
        data = pipeline | beam.Create(listed)
        transform = (data, metadata) | tft_beam.AnalyzeDataset(function)
        _ = transform | tft_beam.WriteTransformFn(str(folder / "transform"))
    return tft.TFTransformOutput(str(folder / "transform"))


def texts_of(rows, item_columns):
    """The split `texts` of clicks that have the columns of their items."""
    empty = {name: type(rows[0][name])() for name in item_columns}
    queries, items = {}, {}
    for row in rows:
        query = queries.setdefault(
            row["query"], {"query": row["query"], "item_id": "", **empty, "clicks": 0}
        )
        columns = {name: row[name] for name in ("item_id", *item_columns)}
        item = items.setdefault(row["item_id"], {"query": "", **columns, "clicks": 0})
        for text in (query, item):
            text["clicks"] += row["clicks"]
    return [*queries.values(), *items.values()]


def transformed(output, rows):
    """The columns of all rows, by the graph that training and the exported model use."""
    columns = {
        key: tf.constant([[row[key]] for row in rows], TYPES.get(key, tf.string)) for key in rows[0]
    }
    return tf.function(output.transform_features_layer(), autograph=False)(columns)
