"""A query model and an index in one SavedModel, loaded by a process that knows neither."""

import itertools
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from pebr_tf.retrieval import load_index
from pebr_tf.retrieval.saved_model import export

pytestmark = pytest.mark.slow

CAP = 25
ASK = """
import sys
import numpy as np
import pebr_tf
import scann
import tensorflow as tf

batches = {"answers": [str(i) for i in range(int(sys.argv[1]))], "alone": ["3"], "none": []}
for folder in sys.argv[2:]:
    model = tf.saved_model.load(f"{folder}/model")
    for name, batch in batches.items():
        found = model.signatures["retrieve"](query=tf.constant(batch, tf.string))
        arrays = {key: value.numpy() for key, value in found.items()}
        arrays["item_ids"] = np.array([str(i, "utf-8") for i in arrays["item_ids"]], str)
        np.savez(f"{folder}/{name}.npz", **arrays)
"""


class Numbered(tf.Module):
    """A query model that knows its queries by their numbers."""

    def __init__(self, embeddings, thresholds):
        super().__init__()
        self.embeddings = tf.Variable(embeddings, trainable=False)
        self.thresholds = tf.Variable(thresholds, trainable=False)

    def __call__(self, query):
        number = tf.strings.to_number(query, tf.int32)
        thresholds = tf.gather(self.thresholds, number)
        return {"embedding": tf.gather(self.embeddings, number), "threshold": thresholds}


def halfway(sample, queries, counts):
    """[B] thresholds between the scores of two items, so that no rounding can decide on one."""
    best = sample.exact.search(queries, top_k=max(counts) + 30)
    thresholds = []
    for row, count in enumerate(counts):
        scores = best.row(row)[1]
        gap = count + np.flatnonzero(-np.diff(scores[count:]) > 1e-5)[0]
        thresholds.append((scores[gap] + scores[gap + 1]) / 2)
    return np.array(thresholds, np.float32)


@pytest.fixture(scope="module")
def queries(sample_of):
    """90 queries of many lengths; some end at once, some later, and the last few are open-ended."""
    sample = sample_of("text ids")
    lengths = np.geomspace(0.1, 10, 90)[:, None]
    embeddings = (lengths * sample.queries(90, 0)).astype(np.float32)
    thresholds = halfway(sample, embeddings, np.resize([0, 3, 20, 60, 200], 90))
    thresholds[-4:] = [-1, -np.inf, 1.5, np.inf]
    return embeddings, thresholds


@pytest.fixture(scope="module")
def everywhere(scann_op, sample_of, tmp_path_factory):
    """The index, told to look into every leaf and at every item there."""
    folder = tmp_path_factory.mktemp("index") / "everywhere"
    shutil.copytree(sample_of("text ids").directory, folder)
    manifest = json.loads((folder / "index.json").read_text())
    del manifest["digest"]
    manifest["tuning"].update(min_leaves=1_000_000, margin=3.0)
    (folder / "index.json").write_text(json.dumps(manifest))
    return folder


@pytest.fixture(scope="module")
def asked(sample_of, everywhere, queries, tmp_path_factory):
    """Of two exported models what another process gets for all queries, one query and none."""
    scratch = tmp_path_factory.mktemp("asked")
    model = Numbered(*queries)
    export(model, everywhere, scratch / "capped" / "model", CAP)
    export(model, sample_of("text ids").directory, scratch / "tuned" / "model", 10_000)
    folders = [scratch / "capped", scratch / "tuned"]
    subprocess.run([sys.executable, "-c", ASK, "90", *map(str, folders)], check=True)
    return {
        folder.name: {path.stem: dict(np.load(path)) for path in folder.glob("*.npz")}
        for folder in folders
    }


def items_of(answers):
    rows = itertools.pairwise(answers["row_splits"])
    return [set(answers["item_ids"][begin:end]) for begin, end in rows]


def test_answers_are_those_of_the_searcher(everywhere, queries, asked):
    answers = asked["capped"]["answers"]
    expected = load_index(everywhere).search(*queries, limit=CAP)
    np.testing.assert_array_equal(answers["row_splits"], expected.row_splits)
    for row, items in enumerate(items_of(answers)):
        assert items == set(expected.row(row)[0])
    np.testing.assert_allclose(answers["scores"], expected.scores, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(answers["threshold"], expected.thresholds)
    np.testing.assert_array_equal(answers["truncated"], expected.truncated)
    np.testing.assert_allclose(answers["expected_count"], expected.expected_counts, rtol=1e-3)
    assert 0 < answers["truncated"].sum() < 90
    assert answers["scores"].max() <= 1


def test_answers_are_planned_as_the_searcher_plans(sample_of, queries, asked):
    """Leaves that nearly tie may be searched in another order: almost all items are the same."""
    sample, answers = sample_of("text ids"), asked["tuned"]["answers"]
    expected, true = sample.searcher.search(*queries), sample.exact.search(*queries)
    found = items_of(answers)
    planned = [set(expected.row(row)[0]) for row in range(90)]
    different = sum(map(len, map(set.symmetric_difference, found, planned)))
    assert different <= 0.03 * sum(map(len, planned))
    np.testing.assert_allclose(answers["expected_count"], expected.expected_counts, rtol=1e-3)
    assert not answers["truncated"].any()
    for row in range(90):
        assert found[row] <= set(true.row(row)[0])
    ended = range(86)
    assert sum(len(found[row]) for row in ended) >= 0.96 * sum(true.counts[ended])
    assert [len(items) for items in found[86:]] == [1_000, 1_000, 0, 0]


def test_a_query_alone_gets_what_it_gets_in_a_batch(asked):
    for answers in asked.values():
        part = slice(*answers["answers"]["row_splits"][3:5])
        expected = answers["answers"]["item_ids"][part]
        np.testing.assert_array_equal(answers["alone"]["item_ids"], expected)
        assert answers["alone"]["row_splits"].tolist() == [0, part.stop - part.start]


def test_no_query_gets_nothing(asked):
    answers = asked["tuned"]["none"]
    assert answers["row_splits"].tolist() == [0]
    for name in ("item_ids", "scores", "threshold", "expected_count", "truncated"):
        assert answers[name].shape == (0,)
