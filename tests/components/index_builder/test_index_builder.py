"""IndexBuilder: the files after Do, compared with direct calls of the towers."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from index_builder_cases import TOWERS, build, inputs, item

from components import example_files
from components.index_builder import embed, shards
from pebr_tf.config import Config
from pebr_tf.errors import UserError
from pebr_tf.retrieval import load_index
from pebr_tf.retrieval.artifact import IndexManifest, read_vectors

pytestmark = pytest.mark.slow

ITEMS = [
    item("b2", "red shoe", 0.5, colour="red"),
    item("华为-1", "华为手机", 2.0, colour=""),
    item("a1", "blue shoe", 12.25, colour="蓝"),
    item("Z9", "lamp", 0.0, colour="red"),
]
FILES = {"index", "moments.npz", "payload.parquet"}


def direct(items):
    titles = tf.constant([row["title"] for row in items])
    prices = tf.constant([row["price"] for row in items], tf.float32)
    vectors = TOWERS.item(titles, prices)["embedding"].numpy()
    return {row["item_id"]: vector for row, vector in zip(items, vectors, strict=True)}


def test_every_item_is_embedded_once_and_in_one_order(tmp_path, monkeypatch):
    # Two shards, of three batches and of one.
    monkeypatch.setattr(example_files, "BATCH", 1)
    monkeypatch.setattr(embed, "SHARD_BATCHES", 3)
    config = Config().replace("data.payload_columns", ["title", "colour", "price", "item_id"])
    uri = build(tmp_path, inputs(tmp_path, ITEMS, ["shoe"]), config)

    assert {path.name for path in uri.iterdir()} == FILES
    assert [path.name for path in uri.parent.iterdir()] == ["7"]
    vectors, ids = read_vectors(uri / "index")
    assert ids.tolist() == ["Z9", "a1", "b2", "华为-1"]
    oracle = direct(ITEMS)
    np.testing.assert_allclose(vectors, [oracle[name] for name in ids], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-7)
    assert pq.read_table(uri / "payload.parquet").to_pydict() == {
        "item_id": ["Z9", "a1", "b2", "华为-1"],
        "title": ["lamp", "blue shoe", "red shoe", "华为手机"],
        "colour": ["red", "蓝", "red", ""],
        "price": ["0", "12.25", "0.5", "2"],
    }
    # A column of `string` has at most 2 GiB.
    assert set(pq.read_schema(uri / "payload.parquet").types) == {pa.large_string()}
    moments = np.load(uri / "moments.npz")
    np.testing.assert_allclose(moments["mean"], vectors.mean(axis=0), atol=1e-7)
    np.testing.assert_allclose(moments["covariance"], np.cov(vectors.T, bias=True), atol=1e-7)
    found = load_index(uri / "index").search(oracle["华为-1"][None], top_k=1)
    assert found.item_ids.tolist() == ["华为-1"]


REJECTED = {
    "duplicates": (
        [item(name, "x") for name in ("c", "b", "a", "a", "b", "c", "d", "d", "b")],
        r"^the catalogue must have every item_id once\. "
        r"Received: more than one 'a', 'b', 'c' and 1 more\.$",
    ),
    "empty": ([], r"^the catalogue must have an item\. Received: none in .*catalogue\.$"),
    "vectors": (
        [item("a", "fine"), item("b", "broken"), item("c", "nothing")],
        r"^the model must give every item a finite vector of length above zero\. "
        r"Received: 'b' \(not finite\), 'c' \(zero\)\.$",
    ),
    "columns": (
        [{"item_id": "a", "price": "12"}],
        r"^the catalogue must have the columns that the model and data\.payload_columns name\. "
        r"Received: no title and no price\.$",
    ),
}


@pytest.mark.parametrize("case", REJECTED)
def test_bad_catalogues_are_rejected_and_leave_nothing(tmp_path, case):
    items, text = REJECTED[case]
    given = inputs(tmp_path, items)
    with pytest.raises(UserError, match=text):
        build(tmp_path, given)
    assert list((tmp_path / "index" / "7").iterdir()) == []
    assert [path.name for path in (tmp_path / "index").iterdir()] == ["7"]


def test_a_model_without_a_signature_is_rejected(tmp_path):
    given = inputs(tmp_path, ITEMS, signatures=["query"])
    text = r"^the model must have the signatures item and query\. Received: query in "
    with pytest.raises(UserError, match=text):
        build(tmp_path, given)


def test_a_large_catalogue_gets_a_tuned_index(tmp_path):
    random = np.random.default_rng(1)
    words = ["".join(random.choice(list("abcdefgh"), 5)) for _ in range(60)]
    items = [
        item(f"item-{n}", " ".join(random.choice(words, 3)), float(random.random()))
        for n in range(2_000)
    ]
    queries = [" ".join(random.choice(words, 2)) for _ in range(300)]
    config = Config().replace_all(
        {"index.exact_below": 0, "index.check_queries": 50, "cutoff.background_sample": 500}
    )
    uri = build(tmp_path, inputs(tmp_path, items, queries * 2), config)

    manifest = json.loads((uri / "index" / "index.json").read_text())
    assert manifest["kind"] == "scann"
    assert manifest["items"] == 2_000
    assert manifest["recall"]["queries"] == 50
    embedded = TOWERS.query(tf.constant(queries))["embedding"].numpy()
    checked = np.load(uri / "index" / "check_queries.npy")
    np.testing.assert_allclose((checked @ embedded.T).max(axis=1), 1, atol=1e-5)
    oracle = direct(items)
    vectors, ids = read_vectors(uri / "index")
    assert sorted(ids) == sorted(oracle)
    assert pq.read_table(uri / "payload.parquet")["item_id"].to_pylist() == sorted(oracle)
    large = [path.name for path in uri.rglob("*.*") if path.stat().st_size >= vectors.nbytes]
    assert large == ["vectors.npy"]
    np.testing.assert_allclose(vectors, [oracle[name] for name in ids], atol=1e-6)
    asked = embedded[:20]
    thresholds = np.full(len(asked), 0.6, np.float32)
    found = load_index(uri / "index").search(asked, thresholds)
    wanted = (asked @ vectors.T >= 0.6).sum()
    assert 0.97 * wanted <= len(found.item_ids) <= wanted


def test_a_second_try_after_a_kill_succeeds(tmp_path, snapshot_at):
    given, folder = inputs(tmp_path, ITEMS, ["shoe"]), tmp_path / "index"
    # After the shards were written, and before the index is complete.
    moments = {"shards": (shards.storage, "write_bytes"), "manifest": (IndexManifest, "save")}
    for moment, place in moments.items():
        snapshot_at(*place, folder, tmp_path / moment)
    build(tmp_path, given)
    for moment in moments:
        shutil.rmtree(folder)
        (tmp_path / moment).rename(folder)
        assert list((folder / "7").iterdir()) == []
        assert ".arrow" in {path.suffix for path in (folder / "7.work").rglob("*")}
        uri = build(tmp_path, given)
        assert {path.name for path in uri.iterdir()} == FILES
        assert [path.name for path in folder.iterdir()] == ["7"]
        oracle = direct(ITEMS)
        vectors, ids = read_vectors(uri / "index")
        assert ids.tolist() == sorted(oracle)
        np.testing.assert_allclose(vectors, [oracle[name] for name in ids], atol=1e-6)
        load_index(uri / "index")
