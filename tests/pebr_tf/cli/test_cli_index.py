"""`pebr index` on real files: an index that answers, and one sentence for a mistake."""

import numpy as np
import pytest
from pebr_command import run

from pebr_tf.retrieval import load_index


@pytest.fixture
def files(tmp_path):
    """Vectors, text ids, queries and thresholds as .npy files, and their arrays."""
    generator = np.random.default_rng(0)
    arrays = {
        "vectors": generator.normal(size=(300, 6)).astype(np.float32),
        "ids": np.array([f"item-{number:03}" for number in range(300)]),
        "queries": generator.normal(size=(40, 6)).astype(np.float32),
        "thresholds": np.full(40, 0.5, np.float32),
    }
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    return tmp_path, arrays


def test_builds_an_index_that_answers_and_passes_its_check(files, capsys):
    folder, arrays = files
    inputs = ("--vectors", folder / "vectors.npy", "--ids", folder / "ids.npy")
    assert run("index", "build", *inputs, "--out", folder / "index") == 0
    output = capsys.readouterr().out
    assert "300 of 6 dimensions" in output
    assert str(folder / "index") in output.replace("\n", "")
    found = load_index(folder / "index").search(arrays["queries"], arrays["thresholds"])
    unit = arrays["vectors"] / np.linalg.norm(arrays["vectors"], axis=1, keepdims=True)
    query = arrays["queries"][0] / np.linalg.norm(arrays["queries"][0])
    assert set(found.row(0)[0]) == set(arrays["ids"][unit @ query >= 0.5])
    assert run("index", "check", folder / "index") == 0
    assert "All files are whole.\n" in capsys.readouterr().out


@pytest.mark.slow
def test_a_config_decides_how_the_index_is_built(files, capsys):
    folder, _ = files
    (folder / "pebr.yaml").write_text("index: {exact_below: 0, leaves: 7, check_recall: 0.5}\n")
    assert not run(
        *("index", "build", "--vectors", folder / "vectors.npy", "--out", folder / "index"),
        *("--queries", folder / "queries.npy", "--thresholds", folder / "thresholds.npy"),
        *("--config", folder / "pebr.yaml"),
    )
    output = capsys.readouterr().out
    assert "ScaNN, 7 leaves" in output
    assert "macro" in output
    assert load_index(folder / "index").search(np.ones((1, 6)), -1).expected_counts[0] == 300
    assert run("index", "check", folder / "index") == 0
    words = "All files are whole, and the stored queries find their items.\n"
    assert words in capsys.readouterr().out


def test_a_missing_file_is_named(files, capsys):
    folder, _ = files
    nothing = folder / "nothing.npy"
    assert run("index", "build", "--vectors", nothing, "--out", folder / "index") == 2
    sentence = f"pebr: {nothing} must be a .npy file. Received: "
    assert capsys.readouterr().err.startswith(sentence)
