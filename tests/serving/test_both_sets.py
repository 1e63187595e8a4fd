"""What one set of versions writes, the other serves: a release, and a ScaNN index."""

import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PYTHONS = {"native": ROOT / ".venv/bin/python3.10", "modern": ROOT / ".venv-modern/bin/python3.13"}
WRITE = """
import sys
sys.path[:0] = ["tests", "tests/serving"]
from pathlib import Path
import numpy as np
import pebr_tf
from tiny_release import write_parts, write_towers
from pebr_tf.config import Index
from pebr_tf.retrieval import build_index, load_index
from serving.push import push

folder = Path(sys.argv[1])
towers = write_towers(folder / "towers", folder / "vocabulary")
queries = ("red phone", "phone", "white laptop bag", "\\u624b\\u673a")
parts = write_parts(folder, folder / "towers", towers, examples=queries)
push(folder / "releases", parts)
vectors = np.random.default_rng(0).normal(size=(3000, 16)).astype("f4")
build_index(folder / "scann", vectors, config=Index(exact_below=0))
found = load_index(folder / "scann").search(vectors[:50], thresholds=np.full(50, 0.5, "f4"))
np.savez(folder / "found.npz", splits=found.row_splits, ids=found.item_ids, scores=found.scores)
"""
READ = """
import sys
from pathlib import Path
import numpy as np
from pebr_tf.release.release import find_release
from pebr_tf.retrieval import load_index
from serving.retriever import Retriever
from serving.self_test import SelfTest

folder = Path(sys.argv[1])
release = Retriever.load(find_release(folder / "releases"))
recorded = SelfTest.load(release.release.directory)
recorded.compare(release)
index = load_index(folder / "scann")
vectors = np.random.default_rng(0).normal(size=(3000, 16)).astype("f4")
found = index.search(vectors[:50], thresholds=np.full(50, 0.5, "f4"))
before = np.load(folder / "found.npz")
np.testing.assert_array_equal(found.row_splits, before["splits"])
np.testing.assert_array_equal(found.item_ids, before["ids"])
np.testing.assert_allclose(found.scores, before["scores"], rtol=0, atol=1e-6)
print(len(recorded.answers), index.tuning is not None, found.row_splits[-1] > 500)
"""


@pytest.mark.skipif(
    not all(python.exists() for python in PYTHONS.values()),
    reason="needs both sets: make setup with Python 3.10, and make test-modern",
)
@pytest.mark.parametrize(("writer", "reader"), [("native", "modern"), ("modern", "native")])
def test_one_set_serves_what_the_other_wrote(tmp_path, writer, reader):
    def run(name, code):
        command = [PYTHONS[name], "-c", code, str(tmp_path)]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    written = run(writer, WRITE)
    assert (written.returncode, written.stdout, written.stderr) == (0, "", "")
    read = run(reader, READ)
    # 4 queries by two knobs.
    assert (read.stdout, read.stderr) == ("8 True True\n", "")
