"""Transform: computes the ids that the towers embed, frequencies, and strata of the queries.

It analyses the split `texts`: every row is either a query or an item, with its training clicks.
Everything is in the graph, so that serving treats a query exactly as training did. Outputs, beside
the inputs of the towers (`pebr_tf.models.fields`):

    query_id, item_hash         int64, for masks: equal texts have equal ids
    query_frequency             float, clicks of the query in the training split
    known_share                 float, share of the query's words that the training split knows
    stratum                     int64, position in `pebr_tf.metrics.strata.STRATA`
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft

from pebr_tf.config import AUTO, Features, Strata
from pebr_tf.data.automatic import VOCABULARY_SIZE
from pebr_tf.models.fields import QUERY_IDS, Field, item_fields, query_fields
from pebr_tf.models.text import normalised, tokens_of
from pipeline.counting import strata_of, totals, vocabulary

_LARGEST = 2**63 - 1


def preprocessing_fn(
    inputs: dict[str, tf.Tensor], custom_config: Mapping[str, Any]
) -> dict[str, Any]:
    """Converts raw columns [B, 1] to the inputs of training, by `features` and `strata`."""
    features = Features.from_mapping(custom_config["features"])
    if features.vocabulary_size == AUTO:
        features = dataclasses.replace(features, vocabulary_size=VOCABULARY_SIZE)
    strata = Strata.from_mapping(custom_config["strata"])
    columns = {name: tf.reshape(values, [-1]) for name, values in inputs.items()}
    # Frequencies do not depend on the case and width of letters.
    columns["query"] = _traced_once(normalised, features.lowercase)(columns["query"])
    fields = (*query_fields(features), *item_fields(features))
    query_id, item_hash = (_identity(columns[name]) for name in ("query", "item_id"))
    clicks, is_query = tf.cast(columns["clicks"], tf.float32), columns["item_id"] == ""
    item_clicks = dict.fromkeys(columns, tf.where(is_query, 0.0, clicks))
    weights = {**item_clicks, "query": tf.where(is_query, clicks, 0.0)}
    queries, counts = (tf.boolean_mask(each, is_query) for each in (query_id, clicks))
    frequency = totals(query_id, queries, counts, "query_clicks")
    return {
        **_fields(fields, columns, weights, features),
        "query_id": query_id,
        "item_hash": item_hash,
        "query_frequency": frequency,
        "known_share": _known_share(columns["query"], weights["query"], features),
        "stratum": strata_of(frequency, queries, counts, strata),
    }


def _fields(
    fields: tuple[Field, ...],
    columns: dict[str, tf.Tensor],
    weights: dict[str, tf.Tensor],
    features: Features,
) -> dict[str, Any]:
    """Ids and numbers for the towers; fields that share a vocabulary are counted together.

    A token counts as often as the texts that have it were clicked. `weights` has the clicks [B] of
    each column [B]; they are 0 where a row does not have it.
    """
    outputs: dict[str, Any] = {}
    by_vocabulary: dict[str, dict[str, tf.RaggedTensor]] = {}
    clicks: dict[str, list[tf.Tensor]] = {}
    for field in fields:
        column = columns[field.column]
        if field.kind == "number":
            outputs[field.name] = _scaled(column, weights[field.column])
            continue
        words = _tokens(column, features) if field.kind == "text" else _whole(column)
        by_vocabulary.setdefault(field.vocabulary, {})[field.name] = words
        of_words = tf.gather(weights[field.column], words.value_rowids())
        clicks.setdefault(field.vocabulary, []).append(of_words)
    for name, parts in by_vocabulary.items():
        words = tf.concat([part.flat_values for part in parts.values()], axis=0)
        counts = tf.concat(clicks[name], axis=0)
        path = vocabulary(words, counts, name, *_limits(features, name))
        for field_name, part in parts.items():
            outputs[field_name] = tft.apply_vocabulary(
                part, path, num_oov_buckets=features.oov_buckets
            )
    return outputs


def _scaled(values: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """[B] values less their weighted mean, over their weighted deviation; 0 if all are equal."""
    values, weights = tf.cast(values, tf.float64), tf.cast(weights, tf.float64)
    sums = [tft.sum(part) for part in (weights, weights * values, weights * values**2)]
    total = tf.maximum(sums[0], 1.0)
    mean = sums[1] / total
    variance = tf.maximum(sums[2] / total - mean**2, 0.0)
    return tf.cast(tf.math.divide_no_nan(values - mean, tf.sqrt(variance)), tf.float32)


def _known_share(queries: tf.Tensor, clicks: tf.Tensor, features: Features) -> tf.Tensor:
    """[B] share of the words of queries [B] that queries of the training split have."""
    words = _whole(queries) if features.query_kind == "id" else _tokens(queries, features.words())
    counts = tf.gather(clicks, words.value_rowids())
    limits = _limits(features, query_fields(features)[0].vocabulary)
    path = vocabulary(words.flat_values, counts, "query_words", *limits)
    known = tft.apply_vocabulary(words.flat_values, path, default_value=-1) >= 0
    known = tf.cast(known, tf.float32)
    return tf.math.unsorted_segment_mean(known, words.value_rowids(), words.nrows())


def _limits(features: Features, vocabulary_name: str) -> tuple[int, int]:
    """The most words of a vocabulary, and the clicks that each needs.

    One click is enough for a query id: it shares nothing with other ids, so without it nothing is
    known of the query.
    """
    least = 1 if vocabulary_name == QUERY_IDS else features.min_token_count
    return features.vocabulary_size, least


def _tokens(column: tf.Tensor, features: Features) -> tf.RaggedTensor:
    """[B, (T)] tokens of texts [B]; repeated texts of a batch are split once."""
    texts, positions = tf.unique(column)
    return tf.gather(_traced_once(tokens_of, features)(texts), positions)


@functools.lru_cache(maxsize=8)
def _traced_once(function: Callable[..., Any], settings: Any) -> Callable[[tf.Tensor], Any]:
    """`function(texts, settings)` as a graph function: Transform traces the rest five times."""
    return tf.function(
        lambda texts: function(texts, settings),
        autograph=False,
        input_signature=[tf.TensorSpec([None], tf.string)],
    )


def _whole(column: tf.Tensor) -> tf.RaggedTensor:
    """[B, (1)], each value as one token, without line breaks, which end lines of a vocabulary."""
    tokens = tf.strings.regex_replace(column, r"[\r\n]", " ")
    return tf.RaggedTensor.from_uniform_row_length(tokens, 1).with_row_splits_dtype(tf.int64)


def _identity(texts: tf.Tensor) -> tf.Tensor:
    """[B] int64 hashes of texts [B]; collisions are negligible."""
    return tf.strings.to_hash_bucket_fast(texts, _LARGEST)
