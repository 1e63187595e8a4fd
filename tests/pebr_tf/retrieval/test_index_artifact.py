"""Index folders: what is built is what is loaded, and what is damaged is rejected."""

import dataclasses
import itertools
import json
import mmap
import shutil

import numpy as np
import pytest
from searcher_cases import assert_same, raises

from pebr_tf.config import Index
from pebr_tf.errors import UserError
from pebr_tf.retrieval import ExactSearcher, ScannSearcher, build_index, load_index
from pebr_tf.retrieval.artifact import read_vectors, self_check
from pebr_tf.retrieval.build import leaves_of
from pebr_tf.retrieval.tune import recall, stand_in_queries, stand_in_thresholds

EXACT_FILES = ["background.npy", "ids.npy", "vectors.npy"]
CHECKS = ("queries", "thresholds", "row_splits", "positions")
SCANN_FILES = sorted(
    [
        *EXACT_FILES,
        *(f"check_{name}.npy" for name in CHECKS),
        *(f"{name}.npy" for name in ("centroids", "leaves", "codes", "tokens", "scatter")),
        *("codebook.pb", "partitioner.pb", "scann_config.pb"),
    ]
)
SCANN = Index(exact_below=0, check_queries=40, check_recall=0.9)


def vectors_of(count, dimension=8, seed=0):
    return np.random.default_rng(seed).normal(size=(count, dimension))


@pytest.fixture(scope="session")
def scann_folder(sample_of):
    """A ScaNN index; copy it before you change it."""
    return sample_of("text ids").directory


@pytest.fixture(scope="session")
def exact_folder(tmp_path_factory):
    """An index that is searched exactly; copy it before you change it."""
    folder = tmp_path_factory.mktemp("index") / "exact"
    build_index(folder, vectors_of(50), [f"item {number}" for number in range(50)])
    return folder


@pytest.fixture(params=["exact", "scann"])
def folder(request, tmp_path, exact_folder, scann_folder):
    source = {"exact": exact_folder, "scann": scann_folder}[request.param]
    return shutil.copytree(source, tmp_path / "copy")


@pytest.mark.parametrize("count", [0, 1, 50])
def test_an_exact_index_comes_back_as_it_was(tmp_path, count):
    vectors = vectors_of(count, 5)
    texts = np.array([f"item {number}" for number in range(count)], "U9")
    for kind, ids in (("text", texts), ("numbers", None)):
        manifest = build_index(tmp_path / kind, vectors, ids, background_sample=20)
        assert manifest.kind == "exact"
        assert (manifest.items, manifest.dimension) == (count, 5)
        loaded, made = load_index(tmp_path / kind), ExactSearcher(vectors, ids)
        assert isinstance(loaded, ExactSearcher)
        np.testing.assert_array_equal(loaded.vectors, made.vectors)
        np.testing.assert_array_equal(loaded.ids, made.ids)
        background = {row.tobytes() for row in loaded.background}
        assert len(background) == len(loaded.background) == min(count, 20)
        assert background <= {row.tobytes() for row in made.vectors}


@pytest.mark.parametrize("name", ["plane", "text ids", "duplicates"])
def test_a_scann_index_comes_back_as_it_was(sample_of, name):
    sample = sample_of(name)
    first, again = sample.searcher, load_index(sample.directory, verify=False)
    assert isinstance(again, ScannSearcher)
    assert vars(again.tuning) == sample.manifest.tuning
    queries = sample.queries(20, 0)
    assert_same(again.search(queries, 0.5), first.search(queries, 0.5))
    assert_same(again.search(queries, top_k=7), first.search(queries, top_k=7))
    order = np.argsort(first.ids)
    np.testing.assert_array_equal(first.ids[order], np.sort(sample.ids))
    expected = sample.exact.vectors[np.argsort(sample.ids)]
    np.testing.assert_array_equal(first.vectors[order], expected)
    np.testing.assert_array_equal(first.background, sample.exact.background)


def test_the_measured_recall_is_measured_again(sample_of):
    sample = sample_of("text ids")
    measured = self_check(sample.directory, sample.searcher, lowest=0)
    stored = sample.manifest.recall
    assert measured == pytest.approx((stored["macro"], stored["micro"]), abs=0.01)
    queries, thresholds, row_splits, positions = (
        np.load(sample.directory / f"check_{name}.npy") for name in CHECKS
    )
    truth = sample.exact.search(queries, thresholds)
    np.testing.assert_array_equal(truth.row_splits, row_splits)
    for row, (begin, end) in enumerate(itertools.pairwise(row_splits)):
        found = sample.searcher.ids[positions[begin:end]]
        assert sorted(found) == sorted(truth.row(row)[0])


def test_nothing_is_pickled(exact_folder, scann_folder):
    for folder, names in ((exact_folder, EXACT_FILES), (scann_folder, SCANN_FILES)):
        assert sorted(path.name for path in folder.iterdir()) == sorted([*names, "index.json"])
        assert sorted(json.loads((folder / "index.json").read_text())["files"]) == names
        for path in folder.glob("*.npy"):
            assert np.load(path, allow_pickle=False).dtype.kind in "fiuU"


def test_vectors_are_mapped_and_not_read(exact_folder, scann_folder):
    for folder in (exact_folder, scann_folder):
        vectors = load_index(folder).vectors
        assert not vectors.flags.writeable
        owner = vectors
        while isinstance(owner, np.ndarray):
            owner = owner.base
        assert isinstance(owner, mmap.mmap)


def test_an_index_that_differs_from_its_manifest_is_rejected(folder):
    """The manifest is that of a release; its tests are in test_release.py."""
    for name in json.loads((folder / "index.json").read_text())["files"]:
        (folder / name).rename(folder / ".moved")
        with raises(UserError, f"{folder / name} is missing from the index."):
            load_index(folder)
        (folder / ".moved").rename(folder / name)
    path = folder / "ids.npy"
    path.write_bytes(path.read_bytes() + b"0")
    with pytest.raises(UserError, match=r"ids\.npy must have SHA-256 .* as in index\.json\. R"):
        load_index(folder)
    for content in (b"", b"not an array"):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r" must hold vectors and ids\. Received: .+\."):
            read_vectors(folder)
    (folder / "index.json").unlink()
    with raises(UserError, f"{folder} must be an index with index.json."):
        load_index(folder)


def test_an_index_that_misses_its_own_answers_is_rejected(tmp_path, scann_folder):
    folder = shutil.copytree(scann_folder, tmp_path / "copy")
    path = folder / "index.json"
    manifest = json.loads(path.read_text())
    del manifest["digest"]
    manifest["tuning"].update(cover=0.05, min_leaves=1, margin=1e-4)
    path.write_text(json.dumps(manifest))
    bad = load_index(folder, verify=False)
    queries, thresholds = (np.load(folder / f"check_{name}.npy") for name in CHECKS[:2])
    macro, micro = recall(
        bad.search(queries, thresholds),
        ExactSearcher(bad.vectors, bad.ids).search(queries, thresholds),
    )
    assert max(macro, micro) < 0.9
    received = f"Received: {macro:.4f} macro, {micro:.4f} micro."
    wanted = f"{folder} must find 0.9 of the items of its own check queries."
    with raises(UserError, f"{wanted} {received}"):
        load_index(folder)
    manifest["config"]["check_recall"] = min(macro, micro)
    path.write_text(json.dumps(manifest))
    assert len(load_index(folder)) == 1_000


@pytest.mark.parametrize("name", ["a b", 'Ärmel 長い "back\\slash"', "a\nb"])
def test_an_index_can_be_moved(tmp_path, sample_of, name, monkeypatch):
    """ScaNN's own folders hold absolute paths; here no file contains its own path."""
    sample = sample_of("plane")
    shutil.copytree(sample.directory, tmp_path / "first").rename(tmp_path / name)
    for path in (tmp_path / name).iterdir():
        assert str(sample.directory).encode() not in path.read_bytes()
    monkeypatch.chdir(tmp_path)
    queries = sample.queries(9, 0)
    assert_same(load_index(name).search(queries, 0.5), sample.searcher.search(queries, 0.5))


AT_LEAST_1 = "must be a whole number of at least 1. Received: 0."
DUPLICATE_IDS = list(range(300))
DUPLICATE_IDS[7], DUPLICATE_IDS[290] = 3, 299
NOT_FINITE = vectors_of(300)
NOT_FINITE[4, 2], NOT_FINITE[200, 0] = np.nan, np.inf


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ids": DUPLICATE_IDS}, "ids must be different. Received: rows 7 (3), 299 (299)."),
        ({"vectors": NOT_FINITE}, "vectors must be finite. Received: rows 4, 200."),
        ({"queries": np.ones((4, 9))}, "queries must have dimension 8. Received: 9."),
        ({"queries": NOT_FINITE}, "queries must be finite. Received: rows 4, 200."),
        (
            {"queries": vectors_of(5), "thresholds": [0.5] * 4},
            "thresholds must be one number or 5, one per query. Received: shape (4,).",
        ),
        ({"thresholds": 0.5}, "thresholds require queries. Received: thresholds alone."),
        ({"background_sample": 0}, f"background_sample {AT_LEAST_1}"),
    ],
)
def test_what_cannot_be_indexed_is_rejected_and_leaves_nothing(tmp_path, arguments, message):
    for config in (Index(), SCANN):
        given = {"vectors": vectors_of(300), **arguments}
        with raises(ValueError, message):
            build_index(tmp_path / "index", config=config, **given)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "notes.txt").write_text("mine")
    with raises(FileExistsError, f"{tmp_path} must be new or an empty directory."):
        build_index(tmp_path, vectors_of(10))


@pytest.mark.parametrize("step", ["training", "answering", "tuning", "writing"])
def test_a_build_that_fails_half_way_leaves_nothing(tmp_path, step):
    def progress(words):
        if words.startswith(step):
            raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left on device"):
        build_index(tmp_path / "index", vectors_of(300), config=SCANN, progress=progress)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("count", "exact_below", "kind"),
    [(300, 301, "exact"), (300, 300, "scann"), (255, 0, "exact"), (256, 0, "scann")],
)
def test_the_size_decides_on_the_kind(tmp_path, count, exact_below, kind):
    config = dataclasses.replace(SCANN, exact_below=exact_below)
    build_index(tmp_path / "index", vectors_of(count), config=config)
    searcher = load_index(tmp_path / "index")
    assert type(searcher) is {"exact": ExactSearcher, "scann": ScannSearcher}[kind]
    assert len(searcher) == count


def test_leaves_grow_with_the_root_of_the_size():
    made = {count: leaves_of(count) for count in (1, 256, 10_000, 1_000_000)}
    assert made == {1: 1, 256: 16, 10_000: 200, 1_000_000: 2_000}


@pytest.mark.parametrize(("leaves", "made", "dimension"), [(1, 2, 8), (5, 5, 1), (1_000, 18, 2)])
def test_the_number_of_leaves_can_be_given(tmp_path, leaves, made, dimension):
    """ScaNN cannot search a single leaf, and needs 16 items per leaf."""
    vectors = vectors_of(300, dimension)
    config = dataclasses.replace(SCANN, leaves=leaves)
    assert build_index(tmp_path / "index", vectors, config=config).leaves == made
    searcher = load_index(tmp_path / "index")
    assert len(searcher.leaves) == made
    expected = ExactSearcher(vectors).search(vectors[:50], 0.9)
    found = searcher.search(vectors[:50], 0.9)
    assert min(recall(found, expected)) > 0.9
    assert recall(expected, found) == (1, 1)


def test_given_queries_are_tuned_on_and_checked(tmp_path):
    """With their own thresholds, or with some that give few to many items."""
    queries = vectors_of(60, seed=1)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    thresholds = np.linspace(0.1, 0.9, 60)
    threshold_of = dict(zip(queries[:, 0].astype(np.float32), thresholds, strict=True))
    for name, given in (("given", thresholds), ("chosen", None)):
        folder = tmp_path / name
        manifest = build_index(folder, vectors_of(300), None, SCANN, queries, given)
        kept = np.load(folder / "check_queries.npy")
        cuts = np.load(folder / "check_thresholds.npy")
        assert manifest.recall["queries"] == len(kept) == 30
        if given is not None:
            assert [threshold_of[row[0]] for row in kept] == pytest.approx(cuts.tolist())
    counts = ExactSearcher(vectors_of(300)).search(kept, cuts).counts
    assert 1 <= counts.min() < counts.max() <= 7


def test_very_few_queries_are_enough(tmp_path):
    """Without any, items with noise stand in."""
    for count in (0, 1, 2):
        folder, thresholds = tmp_path / str(count), np.full(count, 0.4)
        queries = vectors_of(count, seed=1)
        manifest = build_index(folder, vectors_of(300), None, SCANN, queries, thresholds)
        assert manifest.recall["queries"] == (1 if count else 40)
        assert len(load_index(folder)) == 300


def test_thresholds_that_find_nothing_or_everything_do(tmp_path):
    for threshold in (2.0, -1.0):
        folder = tmp_path / str(threshold)
        build_index(folder, vectors_of(300), None, SCANN, vectors_of(20, seed=1), threshold)
        counts = load_index(folder).search(vectors_of(5, seed=2), threshold).counts
        assert counts.tolist() == [0 if threshold == 2 else 300] * 5


def test_stand_in_queries_are_noisy_items():
    vectors = ExactSearcher(vectors_of(300)).vectors
    queries = stand_in_queries(vectors, 100)
    np.testing.assert_array_equal(queries, stand_in_queries(vectors, 100))
    np.testing.assert_allclose(np.linalg.norm(queries, axis=1), 1, atol=1e-6)
    nearest = (queries @ vectors.T).max(axis=1)
    assert 0.6 < nearest.min() < 0.9 < nearest.max() < 1
    assert len(stand_in_queries(vectors, 1_000)) == 300


def test_stand_in_thresholds_give_few_items_and_many():
    exact = ExactSearcher(vectors_of(10_000))
    queries = stand_in_queries(exact.vectors, 300)
    counts = exact.search(queries, stand_in_thresholds(exact, queries)).counts
    assert 1 <= counts.min() <= 2
    assert 100 < counts.max() <= 200
    assert 5 < np.median(counts) < 40


def test_max_leaves_is_kept_in_the_index(tmp_path):
    config = dataclasses.replace(SCANN, max_leaves_searched=3, check_recall=0.0)
    build_index(tmp_path / "index", vectors_of(300), config=config)
    searcher = load_index(tmp_path / "index")
    assert searcher.max_leaves == 3
    assert searcher.search(vectors_of(1, seed=1), -1).truncated.tolist() == [True]
