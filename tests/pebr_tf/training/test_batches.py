"""Batches: every pair is seen, validation is stable."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from training_cases import parse, small, write_pairs

from pebr_tf.models.two_tower import VALIDATION_PART, is_validation
from pebr_tf.training.batches import VALIDATION_BATCHES, training_batches, validation_batches


def queries(batches):
    return [batch["query_id"].numpy().tolist() for batch in batches]


def first(count, files, *arguments, parse=parse):
    """Query ids of the first `count` batches of training."""
    batches = training_batches(files, parse, small().training, *arguments)
    return queries(itertools.islice(batches, count))


def flat(lists):
    return list(itertools.chain.from_iterable(lists))


def test_every_pair_is_seen_once_before_any_is_seen_again(tmp_path):
    files = write_pairs(tmp_path, 160, files=3)
    seen = first(10, files)
    assert all(len(batch) == 16 for batch in seen)
    assert sorted(flat(seen)) == list(range(1000, 1160))
    assert flat(seen) != list(range(1000, 1160))


def test_a_resumed_training_has_another_order_and_the_same_seed_the_same(tmp_path):
    files = write_pairs(tmp_path, 100)
    once, again, resumed = (first(3, files, begin) for begin in (0, 0, 50))
    assert once == again
    assert once != resumed


@pytest.mark.parametrize(("workers", "devices"), [(1, 1), (1, 2), (2, 1), (2, 4)])
def test_the_parts_of_all_devices_are_the_batch_of_one(tmp_path, workers, devices):
    files = write_pairs(tmp_path, 100, files=3)
    whole = first(9, files)
    parsed = []

    def counted(examples):
        parsed.append(examples.shape[0])
        return parse(examples)

    parts = [
        first(9 * devices, files, 0, context, parse=counted)
        for worker in range(workers)
        for context in [tf.distribute.InputContext(workers, worker, workers * devices)]
    ]
    # A worker has the parts of its devices in turn.
    for step, batch in enumerate(whole):
        assert batch == flat(flat(p[step * devices : (step + 1) * devices]) for p in parts)
    # Rows of others are never parsed.
    assert parsed == [16 // (workers * devices)] * workers


@pytest.mark.parametrize("count", [1, 5, 17])
def test_batches_of_tiny_data_are_full(tmp_path, count):
    files = write_pairs(tmp_path, count)
    seen = first(6, files)
    assert [len(batch) for batch in seen] == [16] * 6
    assert set(flat(seen)) == set(range(1000, 1000 + count))


def kept_pairs(count):
    return [1000 + n for n in range(count) if ((1000 + n) ^ (7 * n)) % VALIDATION_PART == 0]


def test_validation_has_the_pairs_that_training_leaves_out(tmp_path):
    files = write_pairs(tmp_path, 2000, files=2)
    batches = validation_batches(files, parse, small().training)
    seen = flat(queries(batches))
    assert all(np.all(is_validation(batch)) for batch in batches)
    assert all(len(batch) == 16 for batch in queries(batches))
    assert set(seen) <= set(kept_pairs(2000))
    assert len(seen) == len(set(seen)) == min(len(kept_pairs(2000)) // 16, VALIDATION_BATCHES) * 16
    assert queries(validation_batches(files, parse, small().training)) == queries(batches)


def test_few_validation_pairs_are_one_smaller_batch_and_one_alone_is_none(tmp_path):
    some = next(n for n in range(1, 500) if len(kept_pairs(n)) == 3)
    assert queries(validation_batches(write_pairs(tmp_path, some), parse, small().training)) == [
        kept_pairs(some)
    ]
    one = next(n for n in range(1, 500) if len(kept_pairs(n)) == 1)
    assert validation_batches(write_pairs(tmp_path, one), parse, small().training) == []
    assert validation_batches(write_pairs(tmp_path, 1), parse, small().training) == []


def test_validation_has_a_limit(tmp_path):
    files = write_pairs(tmp_path, 3000)
    batches = validation_batches(files, parse, small(training__batch_size=4).training)
    assert len(batches) == VALIDATION_BATCHES
