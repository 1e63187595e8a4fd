"""The histogram of many values at once, against that of prometheus_client."""

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from serving.service.metrics import BatchHistogram

BUCKETS = (0.0, 0.25, 0.5, 1.0)
# Sums of these are exact, in whichever order.
BATCHES = [[-1.0, -0.5, -0.375], [], [0.0, 0.25, 0.3125, 1.0, 1.5, 7.0]]


def exported(*collectors):
    registry = CollectorRegistry()
    for collector in collectors:
        registry.register(collector)
    lines = generate_latest(registry).decode().splitlines()
    return sorted(line for line in lines if "_created" not in line)


def test_values_are_where_one_at_a_time_would_be():
    mine = BatchHistogram("name", "text", BUCKETS)
    theirs = Histogram("name", "text", buckets=BUCKETS, registry=None)
    for batch in BATCHES:
        mine.add(np.array(batch, np.float32))
        for value in np.array(batch, np.float32):
            theirs.observe(float(value))
    assert exported(mine) == exported(theirs)


def test_children_by_label():
    mine = BatchHistogram("name", "text", BUCKETS, "stage", ("a", "b"))
    theirs = Histogram("name", "text", ["stage"], buckets=BUCKETS, registry=None)
    for child, batch in zip("aba", BATCHES, strict=True):
        mine.add(batch, child)
        for value in batch:
            theirs.labels(child).observe(value)
    theirs.labels("b")
    assert exported(mine) == exported(theirs)


def test_an_unknown_child_is_a_mistake():
    with pytest.raises(KeyError):
        BatchHistogram("name", "text", BUCKETS, "stage", ("a",)).add([1.0], "c")
