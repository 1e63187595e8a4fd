"""Weights of an earlier model as the start of the next."""

import numpy as np
import pytest
import tensorflow as tf
from training_cases import parse, small, write_pairs

from pebr_tf.models.two_tower import TwoTower
from pebr_tf.training.batches import training_batches
from pebr_tf.training.warm_start import warm_start

WORDS = [f"word{number}" for number in range(30)]
SEPARATE = {"towers__shared_tokens": False}
# A batch for any vocabulary.
SHORT = {name: tf.ragged.constant([[0, 1]]) for name in ("query_tokens", "item_title_tokens")}


@pytest.fixture
def batch(tmp_path):
    return next(iter(training_batches(write_pairs(tmp_path, 40), parse, small().training)))


def made(batch, words, seed, **changes):
    tf.keras.utils.set_random_seed(seed)
    model = TwoTower(small(**changes), {"tokens": len(words)})
    model.encode_query(batch)
    model.encode_item(batch)
    return model


def saved(model, folder, depth=1):
    """The model in a SavedModel, some attributes down."""
    module = tf.Module()
    module.towers = model
    for _ in range(depth - 1):
        outer = tf.Module()
        outer.inner = module
        module = outer
    tf.saved_model.save(module, str(folder))
    return folder


def tables(model):
    found = {"query": model.query_tower.tables, "item": model.item_tower.tables}
    return {name: layer.tables["tokens"].numpy() for name, layer in found.items()}


def others(model):
    """All but the tables, which come first."""
    return [v.numpy() for v in model.trainable_variables if "tokens" not in v.name]


@pytest.mark.parametrize(
    ("depth", "changes"),
    [(1, SEPARATE), (3, {"loss__family": "info_nce", "loss__learn_temperature": True})],
)
def test_the_same_vocabulary_gives_the_same_model(tmp_path, batch, depth, changes):
    earlier, model = made(batch, WORDS, 1, **changes), made(batch, WORDS, 2, **changes)
    folder = saved(earlier, tmp_path / "earlier", depth)
    warm_start(model, folder, {"tokens": WORDS}, {"tokens": WORDS})
    for ours, theirs in zip(model.trainable_variables, earlier.trainable_variables, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(
        model.encode_query(batch).vectors, earlier.encode_query(batch).vectors
    )


@pytest.mark.parametrize("changes", [{}, SEPARATE])
def test_rows_follow_their_words_and_new_words_start_fresh(tmp_path, batch, changes):
    new = ["new0", *WORDS[:4:-1], "new1"]
    earlier, model = made(batch, WORDS, 1, **changes), made(SHORT, new, 2, **changes)
    fresh = tables(model)
    folder = saved(earlier, tmp_path / "earlier")
    warm_start(model, folder, {"tokens": new}, {"tokens": WORDS})
    for name, table in tables(model).items():
        for place, word in enumerate(new):
            row = tables(earlier)[name][WORDS.index(word)] if word in WORDS else fresh[name][place]
            np.testing.assert_array_equal(table[place], row)
        # As many buckets as before: a rare word falls into the same one.
        np.testing.assert_array_equal(table[27:], tables(earlier)[name][30:])
    for ours, theirs in zip(others(model), others(earlier), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_other_numbers_of_buckets_and_unknown_vocabularies_start_fresh(tmp_path, batch):
    earlier = made(batch, WORDS, 1)
    model = made(batch, WORDS, 2, features__oov_buckets=5)
    fresh = tables(model)["query"]
    warm_start(model, saved(earlier, tmp_path / "earlier"), {"tokens": WORDS}, {"tokens": WORDS})
    np.testing.assert_array_equal(tables(model)["query"][:30], tables(earlier)["query"][:30])
    np.testing.assert_array_equal(tables(model)["query"][30:], fresh[30:])
    # Neither does a vocabulary that the earlier model lacks bring its rows.
    model = made(batch, WORDS, 2)
    fresh = tables(model)["query"][:30]
    warm_start(model, tmp_path / "earlier", {"tokens": WORDS}, {})
    np.testing.assert_array_equal(tables(model)["query"][:30], fresh)


def test_another_dimension_starts_fresh(tmp_path, batch):
    earlier = made(batch, WORDS, 1, towers__token_dimension=5, towers__hidden_layers=[8])
    model = made(batch, WORDS, 2, towers__hidden_layers=[8])
    before = [variable.numpy() for variable in model.trainable_variables]
    warm_start(model, saved(earlier, tmp_path / "earlier"), {"tokens": WORDS}, {"tokens": WORDS})
    # Of the first layers nothing fits but their biases; the last ones do.
    np.testing.assert_array_equal(tables(model)["query"], before[0])
    np.testing.assert_array_equal(model.query_tower._last.kernel, earlier.query_tower._last.kernel)
