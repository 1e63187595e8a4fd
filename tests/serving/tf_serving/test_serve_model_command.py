"""`pebr serve-model` serves a folder of releases, follows it, and stops when told to."""

import os
import re
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner

from pebr_tf.config import TfServing
from pebr_tf.errors import UserError
from serving.tf_serving.remote_encoder import RemoteEncoder
from serving.tf_serving.serve_model_command import serve_model


@pytest.mark.slow
def test_a_folder_of_releases_from_start_to_signal(tmp_path, query_model):
    for version in (20260101000000, 20260102000000):
        (tmp_path / str(version)).mkdir()
        (tmp_path / str(version) / "query_model").symlink_to(query_model)
    command = [sys.executable, "-m", "pebr_tf.cli.main", "serve-model", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--models", str(tmp_path), "--name", "mine"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        line = process.stdout.readline()
        found = re.fullmatch(
            rf"mine of {tmp_path} is served at (127\.0\.0\.1:\d+), standing in for TF Serving\n",
            line,
        )
        assert found, line + process.stderr.read()
        settings = TfServing(address=found.group(1), model="mine", deadline_milliseconds=60_000)
        encoder = RemoteEncoder(settings, 20260102000000)
        encoder.check()
        assert len(encoder.encode(["phone"])) == 1
        encoder.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.communicate()


def test_a_folder_without_models(tmp_path):
    (tmp_path / "1").mkdir()
    result = CliRunner().invoke(serve_model, ["--models", str(tmp_path)])
    assert isinstance(result.exception, UserError)
    assert str(result.exception) == (
        f"ROOT must hold a folder VERSION/saved_model.pb, or releases that do. "
        f"Received: {tmp_path}."
    )


def test_the_help_says_what_it_is():
    text = CliRunner().invoke(serve_model, ["--help"]).output
    assert "Stand in for TF Serving" in text
    assert "[default: pebr_query]" in " ".join(text.split())
