"""Validates statistics with tfdv: against the schema, for skew and for drift."""

from typing import TypeAlias

import tensorflow_data_validation as tfdv
from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2, statistics_pb2

Statistics: TypeAlias = statistics_pb2.DatasetFeatureStatisticsList
# Timestamps are later in every run, and in every held-out part of a split by time.
NOT_COMPARED = ("timestamp",)
# The held-out clicks of a query go to one split, so a frequent query is skewed by design.
NOT_SKEWED = ("query",)
# With fewer examples a share varies by 0.05 by chance, and limits of 0.3 mean little.
LEAST_EXAMPLES = 100
_TYPES = {
    statistics_pb2.FeatureNameStatistics.INT: schema_pb2.INT,
    statistics_pb2.FeatureNameStatistics.FLOAT: schema_pb2.FLOAT,
    statistics_pb2.FeatureNameStatistics.STRING: schema_pb2.BYTES,
    statistics_pb2.FeatureNameStatistics.BYTES: schema_pb2.BYTES,
}


# The statistics that each kind of distance is measured from, as an argument of tfdv. Distances are
# symmetric; the first statistics are those checked against the schema.
_CONTROLS = {"drift": "previous_statistics", "skew": "serving_statistics"}


def relaxed(schema: schema_pb2.Schema) -> schema_pb2.Schema:
    """An inferred schema without the values of the training split.

    SchemaGen lists the values of every text column that has few. A query or brand that occurs only
    in a held-out split would then be an anomaly. Types, presence and shapes stay.
    """
    result = schema_pb2.Schema()
    result.CopyFrom(schema)
    del result.string_domain[:]
    for feature in result.feature:
        domain = feature.WhichOneof("domain_info")
        if domain is not None:
            feature.ClearField(domain)
        feature.ClearField("distribution_constraints")
    return result


def check(
    statistics: Statistics,
    schema: schema_pb2.Schema,
    kind: str,
    control: Statistics | None,
    limit: float | None,
) -> anomalies_pb2.Anomalies:
    """Checks a split against the schema and, for drift or skew, against control statistics.

    Drift is the distance of train from train of the last accepted run, skew that of a held-out
    split from train. A distance above `limit` is an anomaly; None: no limit.
    """
    if control is None or not large_enough(statistics, control):
        return _validated(statistics, schema)
    compared = _with_comparators(schema, f"{kind}_comparator", limit, statistics, control)
    return tfdv.validate_statistics(statistics, compared, **{_CONTROLS[kind]: control})


def _validated(statistics: Statistics, schema: schema_pb2.Schema) -> anomalies_pb2.Anomalies:
    if _examples(statistics):
        return tfdv.validate_statistics(statistics, schema)
    # One anomaly is clearer than a missing-column anomaly for every column.
    anomalies = anomalies_pb2.Anomalies()
    info = anomalies.dataset_anomaly_info
    info.severity = anomalies_pb2.AnomalyInfo.ERROR
    info.short_description = info.description = "no examples"
    info.reason.add(
        type=anomalies_pb2.AnomalyInfo.DATASET_LOW_NUM_EXAMPLES,
        short_description="no examples",
        description="no examples",
    )
    return anomalies


def large_enough(*statistics: Statistics) -> bool:
    """Whether each has enough examples to be compared."""
    return min(map(_examples, statistics)) >= LEAST_EXAMPLES


def _examples(statistics: Statistics) -> int:
    return sum(dataset.num_examples for dataset in statistics.datasets)


def _with_comparators(
    schema: schema_pb2.Schema,
    name: str,
    limit: float | None,
    statistics: Statistics,
    control: Statistics,
) -> schema_pb2.Schema:
    """A copy of the schema that compares every column which both sides have with the same type.

    Comparators of a reviewed schema stay. A column that one side lacks has not drifted: the
    features have changed, or the schema reports it as missing.
    """
    result = schema_pb2.Schema()
    result.CopyFrom(schema)
    here, there = _types(statistics), _types(control)
    for feature in result.feature:
        if here.get(feature.name) is None or here[feature.name] != there.get(feature.name):
            feature.ClearField(name)
        elif name == "skew_comparator" and feature.name in NOT_SKEWED:
            continue
        elif limit is not None and not feature.HasField(name):
            _compare(feature, name, limit)
    return result


def _compare(feature: schema_pb2.Feature, name: str, limit: float) -> None:
    if feature.name in NOT_COMPARED:
        return
    if feature.type == schema_pb2.BYTES:
        getattr(feature, name).infinity_norm.threshold = limit
    elif feature.type in (schema_pb2.INT, schema_pb2.FLOAT):
        divergence = getattr(feature, name).jensen_shannon_divergence
        divergence.threshold = limit
        # With an outlier, the first bucket of equal width holds almost everything: two samples of
        # one log-normal law are then 0.3 to 0.9 apart.
        divergence.source.type = schema_pb2.HistogramSelection.QUANTILES


def _types(statistics: Statistics) -> dict[str, int | None]:
    return {
        feature.path.step[0]: _TYPES.get(feature.type)
        for dataset in statistics.datasets
        for feature in dataset.features
    }
