"""`pebr export`: a release as one SavedModel, against the searcher of its index."""

import dataclasses
import shutil

import numpy as np
import pytest
import tensorflow as tf
from pebr_command import invoke
from tiny_release import DIMENSION

from pebr_tf.config import Index
from pebr_tf.errors import UserError
from pebr_tf.release.release import write_release
from pebr_tf.retrieval import build_index, load_index
from serving.cli.export import export

QUERIES = ["red phone", "cable", "blue laptop bag"]


@pytest.mark.slow
def test_the_model_answers_as_the_index_of_its_release(scann_op, parts, tmp_path):
    index = tmp_path / "parts"
    shutil.copytree(parts.index, index)
    shutil.rmtree(index / "index")
    vectors = np.random.default_rng(0).normal(size=(400, DIMENSION))
    build_index(index / "index", vectors, config=Index(exact_below=0, check_recall=0.9))
    release = write_release(tmp_path / "releases", dataclasses.replace(parts, index=index))

    arguments = (export, "--release", tmp_path / "releases", "--out", tmp_path / "model")
    assert invoke(*arguments).output == (
        f"Wrote {tmp_path / 'model'} with the signature `retrieve`, "
        f"from version {release.version}.\n"
    )
    model = tf.saved_model.load(str(tmp_path / "model"))
    found = model.signatures["retrieve"](query=tf.constant(QUERIES))
    encode = tf.saved_model.load(str(release.query_model)).signatures["serving_default"]
    encoded = encode(query=tf.constant(QUERIES))
    np.testing.assert_array_equal(found["threshold"], encoded["threshold"])
    expected = load_index(release.catalogue.index).search(
        encoded["embedding"].numpy(), encoded["threshold"].numpy(), limit=150
    )
    assert len(expected.item_ids) > 0
    for row in range(len(QUERIES)):
        part = slice(*found["row_splits"][row : row + 2].numpy())
        items = set(found["item_ids"][part].numpy())
        assert (found["scores"][part].numpy() >= encoded["threshold"][row].numpy() - 1e-6).all()
        # Leaves that nearly tie may be searched in another order, and codes choose candidates.
        assert len(items & set(expected.row(row)[0])) >= 0.95 * expected.counts[row]

    sentence = f"^{tmp_path / 'model'} must be new or an empty directory\\.$"
    with pytest.raises(UserError, match=sentence):
        invoke(*arguments)


def test_an_exact_index_is_rejected(releases, tmp_path):
    with pytest.raises(UserError, match=r"must be an index of kind scann\. Received: exact\.$"):
        invoke(export, "--release", releases, "--out", tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
