"""The generated stubs belong to the .proto file beside them."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(sys.version_info >= (3, 11), reason="set native generates them")
def test_stubs_are_what_make_proto_writes(tmp_path):
    outputs = [f"--python_out={tmp_path}", f"--grpc_python_out={tmp_path}"]
    command = [sys.executable, "-W", "ignore", "-m", "grpc_tools.protoc", "-I.", *outputs]
    subprocess.run([*command, "serving/proto/retrieval.proto"], cwd=ROOT, check=True)
    written = [path.relative_to(tmp_path) for path in tmp_path.rglob("*.py")]
    assert len(written) == 2
    for path in written:
        assert (ROOT / path).read_text() == (tmp_path / path).read_text(), "run make proto"
