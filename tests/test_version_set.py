"""The locked packages fit together: what the pipeline will stand on imports, and quietly."""

import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "import tfx.v1",
        "from tfx.orchestration.kubeflow.v2.kubeflow_v2_dag_runner import KubeflowV2DagRunner",
        "import apache_beam, ml_metadata, tensorflow_transform, tensorflow_data_validation",
        "import tensorflow_recommenders, tensorflow_probability",
        "from scann.scann_ops.py import scann_ops, scann_ops_pybind",
    ],
)
def test_the_version_set_imports_without_a_word(statement):
    result = subprocess.run(
        [sys.executable, "-c", f"import pebr_tf\n{statement}"], capture_output=True, text=True
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
