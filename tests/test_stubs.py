"""The generated stubs belong to the .proto files beside them."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("proto", "services"),
    [("pebr_tf/retrieval/shard.proto", False), ("serving/proto/retrieval.proto", True)],
)
def test_stubs_are_what_make_proto_writes(tmp_path, proto, services):
    outputs = [f"--python_out={tmp_path}"] + [f"--grpc_python_out={tmp_path}"] * services
    command = [sys.executable, "-W", "ignore", "-m", "grpc_tools.protoc", "-I.", *outputs, proto]
    subprocess.run(command, cwd=ROOT, check=True)
    written = [path.relative_to(tmp_path) for path in tmp_path.rglob("*.py")]
    assert len(written) == 1 + services
    for path in written:
        assert (ROOT / path).read_text() == (tmp_path / path).read_text(), "run make proto"
