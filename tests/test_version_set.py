"""The locked packages fit together: what the pipeline will stand on imports, and quietly."""

import subprocess
import sys

import pytest

# In one process, for most of them take seconds to import TensorFlow.
PROGRAM = """
import pebr_tf
from scann.scann_ops.py import scann_ops, scann_ops_pybind
import tensorflow_recommenders, tensorflow_probability
import apache_beam, ml_metadata, tensorflow_transform, tensorflow_data_validation
import tfx.v1
from tfx.orchestration.kubeflow.v2.kubeflow_v2_dag_runner import KubeflowV2DagRunner
"""


@pytest.mark.slow
def test_the_version_set_imports_without_a_word():
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
