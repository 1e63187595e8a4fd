"""The remote encoder returns what the embedded one returns, from the version of its release."""

import numpy as np
import pytest
from tf_serving_stand_in import TfServingStandIn

from pebr_tf.retrieval.encoded import ENCODED_FIELDS, TOWER_FIELDS
from serving.errors import UnavailableError

QUERIES = ["red phone", "phone", "größe 42 ☕", "x" * 500, "laptop bag 3"]


@pytest.mark.parametrize("size", [1, 256])
def test_equal_to_the_embedded_encoder(server, encoder_of, embedded, size):
    queries = (QUERIES * 60)[:size]
    encoder = encoder_of(server.address)
    expected = embedded.encode(queries)
    towers = encoder.encode(queries, with_law=False)
    for name in TOWER_FIELDS:
        np.testing.assert_array_equal(getattr(towers, name), getattr(expected, name))
    assert np.isnan(towers.alpha).all()
    received = encoder.encode(queries)
    for name in ENCODED_FIELDS:
        ours, theirs = getattr(received, name), getattr(expected, name)
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
    encoder.close()
    for ask in (encoder.check, lambda: encoder.encode(["phone"])):
        with pytest.raises(UnavailableError, match=f"to TF Serving at {server.address} is closed"):
            ask()


def test_a_missing_version_is_named(server, encoder_of):
    encoder = encoder_of(server.address, 8)
    message = f"^TF Serving at {server.address} has no version 8 of pebr_query[.]$"
    for ask in (encoder.check, lambda: encoder.encode(["phone"]), lambda: encoder.wait_ready(0)):
        with pytest.raises(UnavailableError, match=message):
            ask()


def test_waits_for_a_version_to_be_loaded(tmp_path, query_model, encoder_of):
    (tmp_path / "1").symlink_to(query_model)
    with TfServingStandIn(tmp_path) as running:
        encoder = encoder_of(running.address, 2)
        with pytest.raises(UnavailableError, match="has no version 2"):
            encoder.check()
        (tmp_path / "2").symlink_to(query_model)
        encoder.wait_ready(60)
        assert len(encoder.encode(["phone"])) == 1


def test_does_not_wait_for_a_version_that_failed_to_load(tmp_path, encoder_of):
    (tmp_path / "3").mkdir()
    (tmp_path / "3" / "saved_model.pb").write_bytes(b"no model")
    with TfServingStandIn(tmp_path) as running:
        encoder = encoder_of(running.address, 3)
        # Waiting would outlast the test run.
        with pytest.raises(UnavailableError, match="failed to load version 3 of pebr_query: "):
            encoder.wait_ready(1e6)
