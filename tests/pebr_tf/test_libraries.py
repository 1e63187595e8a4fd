"""ScaNN's op where TensorFlow can load it, all but the op where it cannot, and a quiet import."""

import os
import subprocess
import sys
from contextlib import nullcontext

import pytest

from pebr_tf import libraries

MISFIT = """
import importlib.metadata as metadata
found = metadata.version
metadata.version = lambda name: "2.99.1" if name == "tensorflow" else found(name)
import pebr_tf, tensorflow_recommenders
from pebr_tf.libraries import scann_op
print(tensorflow_recommenders.Model.__name__)
scann_op()
"""


def test_the_op_is_the_one_of_scann(scann_op):
    assert scann_op.__name__ == "scann.scann_ops.py.scann_ops"
    assert callable(scann_op.searcher_from_module)


@pytest.mark.slow
def test_without_its_tensorflow_only_the_op_is_missing():
    result = subprocess.run([sys.executable, "-c", MISFIT], capture_output=True, text=True)
    assert result.stdout == "Model\n", result.stderr
    assert "UserError: ScaNN's TensorFlow op requires TensorFlow 2." in result.stderr
    assert result.stderr.endswith(". Received: 2.99.1.\n")


NOISE = b"""WARNING: All log messages before absl::InitializeLog() is called
I0000 00:00:1.5 77 port.cc:153] oneDNN custom operations are on.
W0000 00:00:1.6 77 gmm_utils.cc:73] All points are the same.
"""
REST = b"E0000 00:00:1.7 77 a.cc:1] An error\nof two lines\n"


@pytest.mark.parametrize("fails", [False, True])
def test_only_chatter_is_dropped_and_only_without_an_error(monkeypatch, capfdbinary, fails):
    monkeypatch.setattr(libraries, "IS_MODERN", True)
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    with pytest.raises(OSError, match="5") if fails else nullcontext(), libraries.quiet():
        os.write(2, NOISE + REST)
        if fails:
            raise OSError(5)
    os.write(2, b"after")
    assert capfdbinary.readouterr().err == NOISE * fails + REST + b"after"


@pytest.mark.parametrize(("modern", "level"), [(True, "1"), (True, ""), (False, "3")])
def test_a_level_that_the_user_has_set_drops_nothing(monkeypatch, capfdbinary, modern, level):
    monkeypatch.setattr(libraries, "IS_MODERN", modern)
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", level)
    with libraries.quiet():
        os.write(2, NOISE)
    assert capfdbinary.readouterr().err == NOISE
