"""Towers of a small log: they learn from the rows that they should, and repeat themselves."""

import functools
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from experiment_runs import untrained
from small_logs import WORDS

from experiments import towers
from experiments.towers import train
from pebr_tf.models.two_tower import VALIDATION_PART, is_validation
from pebr_tf.training.loop import Trainer

sys.path.append(str(Path(__file__).parents[1] / "pebr_tf" / "models"))

from bert_folders import write_folder


def trained(data, share=1.0, **changes):
    return train(data, data.config.replace_all({"training.steps": 40, **changes}), share)


@pytest.fixture(scope="module")
def first(data):
    return trained(data)


@pytest.fixture(scope="module")
def other(data):
    """Hardly trained, from another seed."""
    return trained(data, **{"training.steps": 1, "training.seed": 1})


@pytest.mark.slow
def test_training_brings_queries_to_what_is_clicked(data, first, other):
    """On held-out pairs, against towers that were trained for one step."""
    assert first["loss"] < other["loss"] - 0.5
    assert 1 <= first["steps"] <= 40
    # The towers that tests of experiments use in place of trained ones look the same.
    like = untrained(data, data.config)
    for name in ("items", "vectors", "tau"):
        assert (like[name].shape, like[name].dtype) == (first[name].shape, first[name].dtype)
    assert set(like) == set(first)
    pairs = data.pairs("test")

    def advantage(found):
        cosines = found["vectors"] @ found["items"].T
        return (cosines[pairs.rows, pairs.items] - cosines.mean(axis=1)[pairs.rows]).mean()

    assert advantage(first) > advantage(other) + 0.04


@pytest.mark.slow
def test_the_same_seed_gives_the_same_towers_and_another_does_not(data, first, other):
    tf.random.uniform([30])
    again = trained(data)
    for name in ("vectors", "items", "tau"):
        np.testing.assert_array_equal(again[name], first[name])
        assert np.abs(other[name] - first[name]).max() > 1e-4
    assert again["loss"] == first["loss"] != other["loss"]


class Enough(Exception):
    """Ends a training that has shown what it trains on."""


@pytest.fixture(scope="module")
def shown(data):
    """The first 60 batches and the validation that a training is given."""
    given = {}

    def run(self, batches, validation):
        given.update(batches=list(batches.take(60)), validation=validation)
        raise Enough

    @functools.cache
    def show(share=1.0, **changes):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Trainer, "run", run)
            with pytest.raises(Enough):
                trained(data, share, **{"loss.log_q": False, **changes})
        return given["batches"], given["validation"]

    return show


def pairs_of(batches):
    return {
        pair
        for batch in batches
        for pair in zip(
            batch["query_id"].numpy().tolist(), batch["item_hash"].numpy().tolist(), strict=True
        )
    }


def rows_as_pairs(data, rows):
    ids, hashes = data.features["query_id"].numpy(), data.features["item_hash"].numpy()
    return set(zip(ids[data.query[rows]].tolist(), hashes[data.item[rows]].tolist(), strict=True))


def test_only_rows_of_the_training_split_are_shown_and_all_of_them(data, shown):
    batches, _ = shown()
    assert pairs_of(batches) == rows_as_pairs(data, data.rows("train"))
    held_out = rows_as_pairs(data, data.rows("test")) | rows_as_pairs(data, data.rows("calibrate"))
    assert not pairs_of(batches) & held_out
    assert {len(batch["clicks"]) for batch in batches} == {32}


def test_a_batch_has_the_features_of_its_own_rows(data, shown):
    by_id = {number: place for place, number in enumerate(data.features["query_id"].numpy())}
    by_hash = {number: place for place, number in enumerate(data.features["item_hash"].numpy())}
    (batch, *_), _ = shown()
    assert set(batch) == {*data.features, "clicks"}
    for row in range(32):
        query = by_id[batch["query_id"].numpy()[row]]
        item = by_hash[batch["item_hash"].numpy()[row]]
        for name in data.features:
            place = query if name.startswith("query") else item
            found, expected = batch[name][row].numpy(), data.features[name][place].numpy()
            np.testing.assert_array_equal(found, expected)
        of_pair = (data.query == query) & (data.item == item)
        assert batch["clicks"].numpy()[row] in data.clicks[of_pair]


def test_validation_is_what_training_leaves_out(data, shown):
    _, validation = shown(**{"training.batch_size": 4})
    pairs = rows_as_pairs(data, data.rows("train"))
    left_out = {pair for pair in pairs if (pair[0] ^ pair[1]) % VALIDATION_PART == 0}
    assert left_out
    assert pairs_of(validation) == left_out
    for batch in validation:
        assert is_validation(batch).numpy().all()


def test_a_share_of_the_log_has_so_many_of_its_rows(data, shown):
    size = int(0.25 * len(data.rows("train")))
    # The first epoch has each row of the part once.
    (epoch, *_), _ = shown(0.25, **{"training.batch_size": size})
    assert pairs_of([epoch]) < rows_as_pairs(data, data.rows("train"))
    batches, _ = shown(0.25, **{"training.batch_size": 8})
    assert pairs_of(batches) == pairs_of([epoch])
    (other, *_), _ = shown(0.25, **{"training.batch_size": size, "training.seed": 5})
    assert pairs_of([other]) != pairs_of([epoch])


@pytest.mark.slow
@pytest.mark.parametrize("layers", [0, 1])
def test_towers_on_an_encoder_learn(data, tmp_path, layers):
    write_folder(tmp_path, vocabulary=["[PAD]", "[UNK]", "[CLS]", "[SEP]", *map(str.lower, WORDS)])
    config = data.config.replace_all(
        {
            "towers.kind": "bert",
            "towers.backbone": str(tmp_path),
            "towers.max_length": 16,
            "towers.trainable_layers": layers,
            "training.steps": 40,
        }
    )
    encoded = towers._with_encoded(data, towers._encoded(data, config))
    losses = [train(encoded, config.replace("training.steps", steps))["loss"] for steps in (1, 40)]
    assert losses[1] < losses[0] - 0.5
