"""The retrieval benchmark: its vectors, its arithmetic, and one small run of the command."""

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.retrieval import corpus
from benchmarks.retrieval.command import retrieval
from benchmarks.retrieval.method import Work
from benchmarks.retrieval.methods import BruteForce, FaissFlat, FaissHalf, FixedK, Hnswlib, Usearch
from benchmarks.retrieval.retrieval import growth
from pebr_tf.errors import UserError
from pebr_tf.retrieval import ExactSearcher
from pebr_tf.retrieval.tune import TuningExamples, recall


class FixedKOfOne(FixedK):
    """One dimension a block."""

    def __init__(self):
        super().__init__(1)


@pytest.fixture(scope="module")
def small():
    return corpus.clustered(4_000, 16, 600, seed=3)


def test_a_threshold_lies_between_the_last_item_and_the_next():
    generator = np.random.default_rng(0)
    items = generator.normal(size=(500, 8)).astype(np.float32)
    queries = generator.normal(size=(20, 8)).astype(np.float32)
    wanted = generator.integers(1, 400, 20)
    thresholds = corpus.thresholds_of_counts(items, queries, wanted)
    np.testing.assert_array_equal((queries @ items.T >= thresholds[:, None]).sum(axis=1), wanted)


def test_own_files_are_checked(tmp_path):
    def write(name, array):
        np.save(tmp_path / name, array)
        return tmp_path / name

    vectors, queries = write("v.npy", np.eye(4)), write("q.npy", np.eye(4)[:3])
    read = corpus.from_files(vectors, queries, write("t.npy", np.full(3, 0.5)), 2, seed=0)
    assert read.thresholds.tolist() == [0.5, 0.5]
    assert (read.items.shape, read.queries.shape) == ((4, 4), (2, 4))
    with pytest.raises(UserError, match=r"must hold 3 numbers, one per query\. Received: shape"):
        corpus.from_files(vectors, queries, write("t.npy", np.ones(2)), 2, seed=0)
    with pytest.raises(UserError, match=r"queries must have dimension 4\. Received: 3\."):
        corpus.from_files(vectors, write("q3.npy", np.eye(3)), write("t.npy", np.ones(3)), 2, 0)
    (tmp_path / "text.npy").write_text("no")
    with pytest.raises(UserError, match=r"text\.npy must be a \.npy file"):
        corpus.from_files(tmp_path / "text.npy", queries, vectors, 2, seed=0)


def test_exponents_of_a_known_law_are_found():
    generator = np.random.default_rng(0)
    rows = []
    for size in (1_000, 10_000, 100_000):
        counts = generator.integers(0, 5_000, 200)
        rows.append((size, counts, 1e-6 * size**0.4 * (1 + counts) ** 0.3))
    assert growth(rows) == pytest.approx((0.4, 0.3))


@pytest.mark.parametrize(
    "method", [BruteForce, FixedKOfOne, FaissFlat, FaissHalf, Hnswlib, Usearch]
)
def test_a_rival_finds_what_it_is_asked_for(small, method):
    """Each is set up right: tuned on the very queries, it reaches what it was tuned to."""
    exact = ExactSearcher(small.items)
    queries, thresholds = small.queries[:100], small.thresholds[:100]
    examples = TuningExamples(queries, thresholds, exact.search(queries, thresholds))
    rival = method()
    rival.prepare(Work(small.items, examples, 0.95))
    found = rival.search(queries, thresholds)
    assert min(recall(found, examples.answers)) >= 0.96
    assert (found.scores >= thresholds[found.rows()]).all()
    assert min(recall(examples.answers, found)) == 1.0
    # ScaNN rounds its tables otherwise for a query alone.
    alone = rival.search(queries[:1], thresholds[:1])
    assert alone.counts[0] == pytest.approx(found.counts[0], rel=0.02)


@pytest.mark.slow
def test_the_command_prints_the_table():
    arguments = ["--items", "3000", "--dimension", "16", "--query-count", "560", "--rival", "brute"]
    result = CliRunner().invoke(retrieval, arguments)
    assert result.exit_code == 0, result.output
    for text in ("3,000 items x 16", "BLAS brute", "ours is x", "tuned pEBR-TF", "level operation"):
        assert text in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--query-count", "500"], "--query-count must be above 500. Received: 500."),
        (["--vectors", "v.npy"], "--vectors, --queries and --thresholds must be given together."),
    ],
)
def test_bad_requests_are_rejected(arguments, message):
    result = CliRunner().invoke(retrieval, arguments)
    assert str(result.exception) == message
    assert isinstance(result.exception, UserError)
