"""Index folders: what is built is what is loaded, and what is damaged is refused."""

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
from pebr_tf.retrieval import ExactSearcher, ScannSearcher, artifact, build_index, load_index
from pebr_tf.retrieval.artifact import self_check
from pebr_tf.retrieval.build import leaves_of
from pebr_tf.retrieval.tune import (
    recall,
    stand_in_queries,
    stand_in_thresholds,
)

EXACT_FILES = ["background.npy", "ids.npy", "vectors.npy"]
SCANN_FILES = sorted(
    [
        *EXACT_FILES,
        "check_queries.npy",
        "check_thresholds.npy",
        "check_row_splits.npy",
        "check_positions.npy",
        "centroids.npy",
        "leaves.npy",
        "codes.npy",
        "tokens.npy",
        "codebook.pb",
        "partitioner.pb",
        "scann_config.pb",
        "scatter.npy",
    ]
)
SCANN = Index(exact_below=0, check_queries=40, check_recall=0.9)


def vectors_of(count, dimension=8, seed=0):
    """Random vectors."""
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
    """A copy of either index."""
    source = {"exact": exact_folder, "scann": scann_folder}[request.param]
    return shutil.copytree(source, tmp_path / "copy")


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("count", [0, 1, 50, 3_000])
def test_an_exact_index_comes_back_as_it_was(tmp_path, count, text):
    vectors = vectors_of(count, 5)
    ids = np.array([f"item {number}" for number in range(count)], "U9") if text else None
    manifest = build_index(tmp_path / "index", vectors, ids)
    assert manifest["kind"] == "exact"
    assert manifest["items"] == count
    assert manifest["dimension"] == 5
    loaded, made = load_index(tmp_path / "index"), ExactSearcher(vectors, ids)
    assert isinstance(loaded, ExactSearcher)
    np.testing.assert_array_equal(loaded.vectors, made.vectors)
    np.testing.assert_array_equal(loaded.ids, made.ids)
    np.testing.assert_array_equal(loaded.background, made.background)
    queries = vectors_of(6, 5, seed=1)
    assert_same(loaded.search(queries, 0.3), made.search(queries, 0.3))


@pytest.mark.parametrize("name", ["plane", "text ids", "duplicates"])
def test_a_scann_index_comes_back_as_it_was(sample_of, name):
    sample = sample_of(name)
    first, again = sample.searcher, load_index(sample.directory, verify=False)
    assert isinstance(again, ScannSearcher)
    assert vars(again.tuning) == sample.manifest["tuning"]
    queries = sample.queries(20, 0)
    assert_same(again.search(queries, 0.5), first.search(queries, 0.5))
    assert_same(again.search(queries, top_k=7), first.search(queries, top_k=7))
    order = np.argsort(first.ids)
    np.testing.assert_array_equal(first.ids[order], np.sort(sample.ids))
    np.testing.assert_array_equal(
        first.vectors[order], sample.exact.vectors[np.argsort(sample.ids)]
    )
    np.testing.assert_array_equal(first.background, sample.exact.background)


def test_the_manifest_tells_what_was_built(sample_of):
    sample = sample_of("text ids")
    stored = json.loads((sample.directory / "index.json").read_text())
    assert stored == json.loads(json.dumps(sample.manifest))
    assert stored["format"] == artifact.FORMAT == 1
    assert stored["kind"] == "scann"
    assert (stored["items"], stored["dimension"]) == (1_000, 16)
    assert stored["leaves"] == leaves_of(1_000) == len(sample.searcher.leaves)
    assert stored["config"]["exact_below"] == 0
    assert stored["recall"]["queries"] == 200
    assert 0.9 <= min(stored["recall"]["macro"], stored["recall"]["micro"]) <= 1
    assert 0 < stored["quantisation_error"] < 0.1


def test_the_measured_recall_is_measured_again(sample_of):
    sample = sample_of("text ids")
    measured = self_check(sample.directory, sample.searcher, lowest=0)
    stored = sample.manifest["recall"]
    assert measured == pytest.approx((stored["macro"], stored["micro"]), abs=0.01)
    queries, thresholds, row_splits, positions = (
        np.load(sample.directory / f"check_{name}.npy")
        for name in ("queries", "thresholds", "row_splits", "positions")
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


@pytest.mark.parametrize(
    ("kind", "name"),
    [("exact", name) for name in EXACT_FILES] + [("scann", name) for name in SCANN_FILES],
)
def test_a_changed_or_missing_file_is_refused(tmp_path, exact_folder, scann_folder, kind, name):
    source = {"exact": exact_folder, "scann": scann_folder}[kind]
    folder = shutil.copytree(source, tmp_path / "copy")
    path = folder / name
    whole = path.read_bytes()
    expected = json.loads((folder / "index.json").read_text())["files"][name]
    for place in (0, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with raises(
            UserError,
            f"{path} must have SHA-256 {expected[:12]}... as in index.json. "
            f"Received: {artifact.checksum(path)[:12]}...",
        ):
            load_index(folder)
    path.write_bytes(whole[:-1])
    with pytest.raises(UserError, match="must have SHA-256"):
        load_index(folder)
    path.unlink()
    with raises(UserError, f"{path} is missing from the index."):
        load_index(folder)
    path.write_bytes(whole)
    assert len(load_index(folder)) == len(load_index(source))


def test_another_format_is_refused(folder):
    path = folder / "index.json"
    manifest = json.loads(path.read_text())
    for other in (2, 0, "1", None):
        path.write_text(json.dumps({**manifest, "format": other}))
        with raises(UserError, f"{path} must have format 1. Received: {other!r}."):
            load_index(folder)
    path.write_text("[1, 2]")
    with raises(UserError, f"{path} must have format 1. Received: [1, 2]."):
        load_index(folder)


def test_a_manifest_that_is_no_json_is_refused(folder):
    path = folder / "index.json"
    whole = path.read_bytes()
    for damaged in (b"", b"{", whole[:-10], b"\xff" + whole, b"x" + whole[1:]):
        path.write_bytes(damaged)
        with pytest.raises(UserError) as error:
            load_index(folder)
        assert str(error.value).startswith(f"{path} must be JSON. Received: ")
    path.unlink()
    with raises(UserError, f"{folder} must be an index folder with index.json."):
        load_index(folder)


def test_what_is_no_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("hello")
    for name in ("nothing", "file"):
        with raises(UserError, f"{tmp_path / name} must be an index folder with index.json."):
            load_index(tmp_path / name)
        with raises(UserError, f"{tmp_path / name} must be an index folder with index.json."):
            load_index(str(tmp_path / name))


def test_an_index_that_misses_its_own_answers_is_refused(tmp_path, scann_folder):
    folder = shutil.copytree(scann_folder, tmp_path / "copy")
    path = folder / "index.json"
    manifest = json.loads(path.read_text())
    manifest["tuning"].update(cover=0.05, min_leaves=1, margin=1e-4)
    path.write_text(json.dumps(manifest))
    bad = load_index(folder, verify=False)
    queries, thresholds = (
        np.load(folder / f"check_{name}.npy") for name in ("queries", "thresholds")
    )
    macro, micro = recall(
        bad.search(queries, thresholds),
        ExactSearcher(bad.vectors, bad.ids).search(queries, thresholds),
    )
    assert max(macro, micro) < 0.9
    with raises(
        UserError,
        f"{folder} must find 0.9 of the items of its own check queries. "
        f"Received: {macro:.4f} macro, {micro:.4f} micro.",
    ):
        load_index(folder)
    manifest["config"]["check_recall"] = min(macro, micro)
    path.write_text(json.dumps(manifest))
    assert len(load_index(folder)) == 1_000


@pytest.mark.parametrize(
    "name", ["moved", "a b", "Ärmel 長い", 'it\'s "here"', "back\\slash", "a\nb"]
)
def test_an_index_can_be_moved(tmp_path, sample_of, name):
    """ScaNN's own folders hold absolute paths; here no file may know where it is."""
    sample = sample_of("plane")
    first = shutil.copytree(sample.directory, tmp_path / "first")
    second = first.rename(tmp_path / name)
    for path in second.iterdir():
        assert str(sample.directory).encode() not in path.read_bytes()
    queries = sample.queries(9, 0)
    assert_same(load_index(second).search(queries, 0.5), sample.searcher.search(queries, 0.5))


def test_an_index_is_found_from_the_working_directory(tmp_path, scann_folder, monkeypatch):
    shutil.copytree(scann_folder, tmp_path / "index")
    monkeypatch.chdir(tmp_path)
    assert len(load_index("index")) == 1_000


DUPLICATE_IDS = list(range(300))
DUPLICATE_IDS[7], DUPLICATE_IDS[290] = 3, 299
NOT_FINITE = vectors_of(300)
NOT_FINITE[4, 2], NOT_FINITE[200, 0] = np.nan, np.inf
LENGTH_ZERO = vectors_of(300)
LENGTH_ZERO[299] = 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"vectors": vectors_of(300), "ids": DUPLICATE_IDS},
            "ids must be different. Received: rows 7 (3), 299 (299).",
        ),
        ({"vectors": NOT_FINITE}, "vectors must be finite. Received: rows 4, 200."),
        ({"vectors": LENGTH_ZERO}, "vectors must have a length above zero. Received: row 299."),
        (
            {"vectors": vectors_of(300), "ids": [1, 2]},
            "ids must be 300 values, one a vector. Received: shape (2,).",
        ),
        (
            {"vectors": vectors_of(300), "queries": np.ones((4, 9))},
            "queries must have dimension 8. Received: 9.",
        ),
        (
            {"vectors": vectors_of(300), "queries": NOT_FINITE},
            "queries must be finite. Received: rows 4, 200.",
        ),
        (
            {"vectors": vectors_of(300), "queries": vectors_of(5), "thresholds": [0.5] * 4},
            "thresholds must be one number or 5, one a query. Received: shape (4,).",
        ),
        (
            {"vectors": vectors_of(300), "thresholds": 0.5},
            "thresholds require queries. Received: thresholds alone.",
        ),
        (
            {"vectors": vectors_of(300), "background_sample": 0},
            "background_sample must be a whole number of at least 1. Received: 0.",
        ),
    ],
)
@pytest.mark.parametrize("config", [Index(), SCANN])
def test_what_cannot_be_indexed_is_refused_and_leaves_nothing(tmp_path, config, arguments, message):
    with raises(ValueError, message):
        build_index(tmp_path / "index", config=config, **arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", ["training", "answering", "tuning", "writing"])
def test_a_build_that_fails_half_way_leaves_nothing(tmp_path, step):
    def progress(words):
        if words.startswith(step):
            raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left on device"):
        build_index(tmp_path / "index", vectors_of(300), config=SCANN, progress=progress)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_holds_something_is_refused(tmp_path):
    full = tmp_path / "index"
    full.mkdir()
    (full / "notes.txt").write_text("mine")
    with raises(FileExistsError, f"{full} must be new or an empty directory."):
        build_index(full, vectors_of(10))
    assert [path.name for path in tmp_path.rglob("*")] == ["index", "notes.txt"]
    empty = tmp_path / "empty"
    empty.mkdir()
    build_index(empty, vectors_of(10))
    assert len(load_index(empty)) == 10
    with raises(FileExistsError, f"{empty} must be new or an empty directory."):
        build_index(empty, vectors_of(10))


@pytest.mark.parametrize(
    ("count", "exact_below", "kind"),
    [(300, 301, "exact"), (300, 300, "scann"), (255, 0, "exact"), (256, 0, "scann")],
)
def test_the_size_decides_on_the_kind(tmp_path, count, exact_below, kind):
    config = dataclasses.replace(SCANN, exact_below=exact_below)
    manifest = build_index(tmp_path / "index", vectors_of(count), config=config)
    assert manifest["kind"] == kind
    searcher = load_index(tmp_path / "index")
    assert type(searcher) is {"exact": ExactSearcher, "scann": ScannSearcher}[kind]
    assert len(searcher) == count


def test_leaves_grow_with_the_root_of_the_size():
    assert leaves_of(10_000) == 200
    assert leaves_of(1_000_000) == 2_000
    assert leaves_of(256) == 16
    assert leaves_of(1) == 1


@pytest.mark.parametrize(("leaves", "made"), [(1, 2), (2, 2), (5, 5), (1_000, 18)])
def test_the_number_of_leaves_can_be_given(tmp_path, leaves, made):
    """ScaNN cannot search a single leaf, and needs 16 items for each."""
    vectors = vectors_of(300)
    config = dataclasses.replace(SCANN, leaves=leaves)
    assert build_index(tmp_path / "index", vectors, config=config)["leaves"] == made
    searcher = load_index(tmp_path / "index")
    assert len(searcher.leaves) == made
    expected = ExactSearcher(vectors).search(vectors[:50], 0.5)
    found = searcher.search(vectors[:50], 0.5)
    assert min(recall(found, expected)) > 0.9
    assert recall(expected, found) == (1, 1)


@pytest.mark.parametrize("dimension", [1, 2])
def test_few_dimensions(tmp_path, dimension):
    vectors = vectors_of(300, dimension)
    build_index(tmp_path / "index", vectors, config=SCANN)
    expected = ExactSearcher(vectors).search(vectors[:50], 0.99)
    assert min(recall(load_index(tmp_path / "index").search(vectors[:50], 0.99), expected)) > 0.9


def stored_check(folder):
    """The queries and thresholds that an index keeps for its check."""
    return np.load(folder / "check_queries.npy"), np.load(folder / "check_thresholds.npy")


def test_given_queries_and_thresholds_are_tuned_on_and_checked(tmp_path):
    queries = vectors_of(60, seed=1)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    thresholds = np.linspace(0.1, 0.9, 60)
    manifest = build_index(tmp_path / "index", vectors_of(300), None, SCANN, queries, thresholds)
    kept, cuts = stored_check(tmp_path / "index")
    assert manifest["recall"]["queries"] == len(kept) == 30
    threshold_of = dict(zip(queries[:, 0].astype(np.float32), thresholds, strict=True))
    assert [threshold_of[row[0]] for row in kept] == pytest.approx(cuts.tolist())


def test_queries_without_thresholds_get_some(tmp_path):
    build_index(tmp_path / "index", vectors_of(300), config=SCANN, queries=vectors_of(60, seed=1))
    kept, cuts = stored_check(tmp_path / "index")
    counts = ExactSearcher(vectors_of(300)).search(kept, cuts).counts
    assert 1 <= counts.min() < counts.max() <= 7


@pytest.mark.parametrize("count", [0, 1, 2])
def test_very_few_queries_do(tmp_path, count):
    """Without any, items with noise stand in."""
    manifest = build_index(
        tmp_path / "index",
        vectors_of(300),
        config=SCANN,
        queries=vectors_of(count, seed=1),
        thresholds=np.full(count, 0.4),
    )
    assert manifest["recall"]["queries"] == (1 if count else 40)
    assert len(load_index(tmp_path / "index")) == 300


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


def test_progress_is_told_before_each_step(tmp_path):
    told = []
    build_index(tmp_path / "exact", vectors_of(300), progress=told.append)
    assert told == ["writing vectors", "writing checksums"]
    told.clear()
    build_index(tmp_path / "scann", vectors_of(300), config=SCANN, progress=told.append)
    assert told == [
        "training 18 leaves",
        "answering the tuning queries exactly",
        "tuning",
        "writing checksums",
    ]


def test_the_background_sample_has_the_size_that_was_asked_for(tmp_path):
    vectors = vectors_of(300)
    build_index(tmp_path / "index", vectors, background_sample=20)
    background = load_index(tmp_path / "index").background
    assert background.shape == (20, 8)
    stored = {row.tobytes() for row in ExactSearcher(vectors).vectors}
    assert len({row.tobytes() for row in background}) == 20
    assert {row.tobytes() for row in background} <= stored


def test_a_cap_on_leaves_is_kept_in_the_index(tmp_path):
    config = dataclasses.replace(SCANN, max_leaves_searched=3, check_recall=0.0)
    build_index(tmp_path / "index", vectors_of(300), config=config)
    searcher = load_index(tmp_path / "index")
    assert searcher.max_leaves == 3
    assert searcher.search(vectors_of(1, seed=1), -1).truncated.tolist() == [True]


def test_an_unverified_load_does_not_look_at_checksums(tmp_path, exact_folder):
    folder = shutil.copytree(exact_folder, tmp_path / "copy")
    np.save(folder / "ids.npy", np.arange(50))
    assert load_index(folder, verify=False).ids.tolist() == list(range(50))
    with pytest.raises(UserError, match="must have SHA-256"):
        load_index(folder)
