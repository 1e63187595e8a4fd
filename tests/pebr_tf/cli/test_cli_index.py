"""`pebr index` on real files: an index that answers, and one sentence for a mistake."""

import numpy as np
import pytest
from click.testing import CliRunner

from pebr_tf.cli.main import cli
from pebr_tf.errors import UserError
from pebr_tf.retrieval import load_index


def run(*arguments):
    """What `pebr index` prints, or the error that `pebr` turns into one line."""
    result = CliRunner().invoke(cli, ["index", *map(str, arguments)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


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


def test_builds_an_index_that_answers_and_passes_its_check(files):
    folder, arrays = files
    result = run(
        "build",
        *("--vectors", folder / "vectors.npy", "--ids", folder / "ids.npy"),
        *("--out", folder / "index"),
    )
    assert result.exit_code == 0
    assert "300 of 6 dimensions" in result.output
    assert str(folder / "index") in result.output.replace("\n", "")
    found = load_index(folder / "index").search(arrays["queries"], arrays["thresholds"])
    unit = arrays["vectors"] / np.linalg.norm(arrays["vectors"], axis=1, keepdims=True)
    query = arrays["queries"][0] / np.linalg.norm(arrays["queries"][0])
    assert set(found.row(0)[0]) == set(arrays["ids"][unit @ query >= 0.5])
    assert "All files are whole.\n" in run("check", folder / "index").output


@pytest.mark.slow
def test_a_config_decides_how_the_index_is_built(files):
    folder, _ = files
    (folder / "pebr.yaml").write_text("index: {exact_below: 0, leaves: 7, check_recall: 0.5}\n")
    result = run(
        "build",
        *("--vectors", folder / "vectors.npy", "--out", folder / "index"),
        *("--queries", folder / "queries.npy", "--thresholds", folder / "thresholds.npy"),
        *("--config", folder / "pebr.yaml"),
    )
    assert "ScaNN, 7 leaves" in result.output
    assert "macro" in result.output
    assert load_index(folder / "index").search(np.ones((1, 6)), -1).expected_counts[0] == 300
    checked = run("check", folder / "index").output
    assert "All files are whole, and the stored queries find their items.\n" in checked


def test_a_missing_file_is_named(files):
    folder, _ = files
    with pytest.raises(UserError, match=r"nothing\.npy must be a \.npy file\. Received: "):
        run("build", "--vectors", folder / "nothing.npy", "--out", folder / "index")
