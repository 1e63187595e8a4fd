"""The trained model: its loss against the loss functions called by hand."""

import numpy as np
import pytest
import tensorflow as tf

from pebr_tf.config import Config
from pebr_tf.losses.beta_nce import beta_nce
from pebr_tf.losses.exp_nce import exp_nce
from pebr_tf.losses.law_head import law_term
from pebr_tf.losses.mle import mle
from pebr_tf.losses.negatives import Negatives
from pebr_tf.losses.pointwise import pointwise
from pebr_tf.models.two_tower import TwoTower, family_of, is_validation

SMALL = Config().replace_all(
    {
        "features.oov_buckets": 2,
        "towers.dimension": 6,
        "towers.token_dimension": 4,
        "towers.hidden_layers": [8],
        "towers.tau_hidden_layers": [3],
    }
)
SIZES = {"tokens": 20}
PAIRS = 8
# A pair that validation keeps has a hash of this form: query_id ^ item_hash is a multiple of 50.
QUERY_IDS = np.array([1, 2, 3, 4, 4, 6, 7, 8])
ITEM_IDS = np.array([11, 12, 13, 14, 15, 11, 17, 8 ^ 50])


def batch(clicks=(1, 1, 1, 1, 1, 1, 1, 1)):
    generator = np.random.default_rng(0)

    def tokens():
        return tf.RaggedTensor.from_row_lengths(
            tf.constant(generator.integers(22, size=3 * PAIRS)), [3] * PAIRS
        )

    return {
        "query_tokens": tokens(),
        "item_title_tokens": tokens(),
        "query_id": tf.constant(QUERY_IDS),
        "item_hash": tf.constant(ITEM_IDS),
        "clicks": tf.constant(clicks, tf.float32),
        "query_frequency": tf.constant(generator.integers(1, 50, PAIRS), tf.float32),
        "item_frequency": tf.constant(generator.integers(0, 50, PAIRS), tf.float32),
    }


def made(**changes):
    tf.keras.utils.set_random_seed(3)
    model = TwoTower(
        SMALL.replace_all({k.replace("__", "."): v for k, v in changes.items()}), SIZES
    )
    model.compute_loss(batch())
    # The tau head starts at one value for all queries, which would hide a wrong order.
    if model.tau_head.built:
        last = model.tau_head._perceptron[-1]
        last.kernel.assign(tf.random.normal(last.kernel.shape, seed=1))
    return model


@pytest.fixture(scope="module")
def plain():
    """The model of the config; no test changes it."""
    return made()


def encoded(model):
    query = model.encode_query(batch())
    return query.vectors, model.encode_item(batch()), query.tau


NO_TERM = {"loss__symmetric_weight": 0.0}
OWN = Negatives(item_ids=ITEM_IDS, query_ids=QUERY_IDS)


@pytest.mark.parametrize(
    ("changes", "by_hand"),
    [
        (
            {"loss__mask_known_positives": False, "loss__symmetric_weight": 0.5},
            lambda q, i, t: beta_nce(
                q, i, t, negatives=Negatives(item_ids=ITEM_IDS), symmetric_weight=0.5
            ),
        ),
        (
            {"loss__delta_beta": 0.3, **NO_TERM},
            lambda q, i, t: beta_nce(q, i, t, negatives=OWN, delta_beta=0.3),
        ),
        (
            {"loss__log_q": True, **NO_TERM},
            lambda q, i, t: beta_nce(
                q,
                i,
                t,
                negatives=OWN._replace(
                    log_q=np.log(np.maximum(batch()["item_frequency"].numpy(), 1))
                ),
            ),
        ),
        (
            {"loss__gamma": 0.5},
            lambda q, i, t: beta_nce(
                q,
                i,
                t,
                negatives=OWN._replace(log_query_prior=np.log(batch()["query_frequency"].numpy())),
                symmetric_weight=1.0,
                gamma=0.5,
            ),
        ),
        (
            {"loss__family": "exp_nce"},
            lambda q, i, t: exp_nce(q, i, t, negatives=OWN, symmetric_weight=1.0),
        ),
        (
            {"loss__family": "info_nce", "loss__temperature": 0.1},
            lambda q, i, t: exp_nce(q, i, 0.1, negatives=OWN, symmetric_weight=1.0),
        ),
        (
            {"loss__family": "pointwise", "loss__temperature": 0.5, **NO_TERM},
            lambda q, i, t: pointwise(q, i, 0.5, negatives=OWN),
        ),
        ({"loss__family": "mle", **NO_TERM}, lambda q, i, t: mle(q, i, t, negatives=OWN)),
    ],
)
def test_the_loss_is_the_mean_of_the_function_called_by_hand(changes, by_hand):
    model = made(**changes)
    expected = np.mean(by_hand(*encoded(model)))
    if not model.tau_head.built:
        # A model without tau reports its one temperature.
        one = [changes["loss__temperature"]] * PAIRS
        np.testing.assert_allclose(encoded(model)[2], one, rtol=1e-6)
    np.testing.assert_allclose(model.compute_loss(batch()), expected, rtol=1e-5)


def test_a_pair_weighs_by_its_clicks_and_the_scale_of_clicks_does_not_matter(plain):
    losses = beta_nce(*encoded(plain), negatives=OWN, symmetric_weight=1.0).numpy()
    np.testing.assert_allclose(plain.compute_loss(batch()), losses.mean(), rtol=1e-5)
    clicks = np.array([5, 1, 2, 0, 3, 1, 1, 9])
    expected = np.sum(losses * clicks) / clicks.sum()
    np.testing.assert_allclose(plain.compute_loss(batch(clicks)), expected, rtol=1e-5)
    np.testing.assert_allclose(plain.compute_loss(batch(clicks * 100)), expected, rtol=1e-5)
    assert float(plain.compute_loss(batch([0] * PAIRS))) == 0.0
    # Training leaves out the pairs of validation.
    np.testing.assert_array_equal(is_validation(batch()), [False] * 7 + [True])
    trained = plain.compute_loss(batch(), training=True)
    query = plain.encode_query(batch())
    pairs = query.vectors, plain.encode_item(batch()), query.tau, batch()["query_frequency"]
    term = law_term(plain.loss_layer.law_head, *pairs, is_validation(batch()))
    assert abs(term) > 0.1
    np.testing.assert_allclose(trained, losses[:7].mean() + term, rtol=1e-5)


def test_the_family_of_the_logit():
    for family in ("pointwise", "info_nce", "mle", "exp_nce", "beta_nce"):
        loss = {"loss.family": family, "loss.symmetric_weight": 0.0}
        expected = "beta" if family in ("mle", "beta_nce") else "exponential"
        assert family_of(Config().replace_all(loss).loss) == expected


def test_tau_depends_on_the_frequency_only_where_it_may_see_it(plain):
    more = {**batch(), "query_frequency": batch()["query_frequency"] * 10}
    seeing = made(towers__tau_sees_frequency=True)
    np.testing.assert_array_equal(plain.encode_query(more).tau, plain.encode_query(batch()).tau)
    assert not np.allclose(seeing.encode_query(more).tau, seeing.encode_query(batch()).tau)
    np.testing.assert_array_equal(
        seeing.encode_query(more).vectors, seeing.encode_query(batch()).vectors
    )


def test_towers_share_tokens_or_have_their_own(plain):
    separate = made(towers__shared_tokens=False)
    assert plain.item_tower.tables is plain.query_tower.tables
    assert separate.item_tower.tables is not separate.query_tower.tables
    sizes = [sum(np.size(v) for v in model.trainable_variables) for model in (plain, separate)]
    assert sizes[1] - sizes[0] == 22 * 4


def test_a_step_reads_and_moves_a_batch_s_rows_alone_under_a_strategy():
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        model = TwoTower(SMALL, SIZES)
        model.encode_query(batch())
        model.encode_item(batch())
    table = model.tables.tables["tokens"]
    found = []

    def step(pairs):
        with tf.GradientTape() as tape:
            loss = model.compute_loss(pairs, training=True)
        found.append(tape.gradient(loss, table))
        return loss

    traced = tf.function(lambda pairs: strategy.run(step, (pairs,)), autograph=False)
    operations = traced.get_concrete_function(batch()).graph.get_operations()
    assert isinstance(found[0], tf.IndexedSlices)
    read = [o.outputs[0].shape for o in operations if o.type == "ReadVariableOp"]
    assert read
    assert table.shape not in read
