"""The query model in a JVM: TensorFlow's own loader, which TF Serving uses, and no Python."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from pebr_tf.release.release import find_release

JVM = Path(__file__).parents[2] / "serving/jvm"
DEMO = Path(__file__).parents[2] / "demo/releases"
QUERIES = ["black shoes", "apple 5g phone", "华为 手机", "phone 黑色", "qqqq", "red"]
SHARE, COSINES = 0.8, [0.2, 0.5, 0.8]
pytestmark = pytest.mark.engine


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """The class path of the compiled program."""
    missing = [each for each in ("java", "javac", "mvn") if shutil.which(each) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} must be installed")
    folder = tmp_path_factory.mktemp("jvm")
    jars = f"-DoutputDirectory={folder / 'jars'}"
    command = ["mvn", "-q", "-B", "-f", JVM / "pom.xml", "dependency:copy-dependencies", jars]
    fetched = subprocess.run(command, capture_output=True, text=True)
    if fetched.returncode:
        pytest.skip(f"Maven cannot fetch TensorFlow: {fetched.stdout.strip()[-300:]}")
    path = f"{folder}:{folder / 'jars'}/*"
    command = ["javac", "-d", folder, "-cp", path, JVM / "QueryModel.java"]
    subprocess.run(command, check=True)
    return path


@pytest.fixture(params=["of a log in English and Chinese", "of the demo"])
def model(request):
    """The folder of a query model."""
    if request.param == "of the demo":
        return find_release(DEMO) / "query_model"
    return request.getfixturevalue("base").releases[-1] / "query_model"


def test_all_signatures_return_what_python_returns(program, model, tmp_path):
    (tmp_path / "queries").write_text("\n".join(QUERIES) + "\n", encoding="utf-8")
    done = subprocess.run(
        ["java", "-cp", program, "QueryModel", model, tmp_path / "queries"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    received = {}
    for line in done.stdout.splitlines():
        signature, output, *values = line.split(" ")
        received[signature, output] = np.array(values, float)
    loaded, texts = tf.saved_model.load(str(model)), tf.constant(QUERIES)
    inputs = {
        "serving_default": {},
        "encode": {},
        "query_at": {"recall": tf.fill([len(QUERIES)], SHARE)},
        "share_at": {"share": tf.fill([len(QUERIES)], SHARE)},
        "recall_at": {"cosines": tf.constant([COSINES] * len(QUERIES))},
    }
    wanted = {
        (signature, name): np.ravel(value.numpy()).astype(float)
        for signature, given in inputs.items()
        for name, value in loaded.signatures[signature](query=texts, **given).items()
    }
    assert received.keys() == wanted.keys()
    for key, values in wanted.items():
        np.testing.assert_allclose(received[key], values, rtol=1e-5, atol=1e-5, err_msg=str(key))
    assert np.isfinite(received["query_at", "threshold"]).all()
