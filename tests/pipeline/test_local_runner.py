"""What a run makes of errors, and of a root that it cannot have."""

import errno
import fcntl
import itertools
import os
import re
import socket
from pathlib import Path

import apache_beam as beam
import pytest
import tensorflow as tf

from pebr_tf.config import Config, ConfigError, Pipeline
from pebr_tf.errors import UserError
from pipeline.local_runner import find_user_error, run
from pipeline.metadata import connect

ROOT = Path("run")
AWS = "When reading 'a' in bucket 'b': AWS Error NETWORK_CONNECTION during GetObject operation: no"
SENTENCE = "the catalogue must have an item. Received: none in [a] 'b'."


def raised_by(error):
    """What comes out of a Beam pipeline when a worker raises `error`."""

    def fail(_):
        raise error

    with pytest.raises(Exception) as caught, beam.Pipeline() as pipeline:  # noqa: PT011
        _ = pipeline | beam.Create([1]) | "Embed the items" >> beam.Map(fail)
    return caught.value


def below(*errors):
    """The first error, raised because of the second, and so on."""
    for outer, inner in itertools.pairwise(errors):
        outer.__cause__ = inner
    return errors[0]


BAD_CONFIG = ConfigError("index.leaves", "be a number", "'b'", "c.yaml")
WORKER = f"Traceback (most recent call last):\n  File ...\npebr_tf.errors.UserError: {SENTENCE}"
HANDLED = KeyError("query")
HANDLED.__context__, HANDLED.__suppress_context__ = UserError(SENTENCE), True


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (lambda: raised_by(UserError(SENTENCE)), SENTENCE),
        (lambda: raised_by(BAD_CONFIG), str(BAD_CONFIG)),
        # An internal error.
        (lambda: raised_by(KeyError("query")), None),
        (RuntimeError(f"Pipeline failed: {WORKER} [while running 'Embed/Map']\n"), SENTENCE),
        (below(RuntimeError("Execution 3."), KeyError("executor"), UserError(SENTENCE)), SENTENCE),
        (HANDLED, None),
        (
            OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "run/artifacts/x"),
            "run/artifacts/x must have space. Received: No space left on device.",
        ),
        (
            OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)),
            "run must have space. Received: Disk quota exceeded.",
        ),
        (
            tf.errors.ResourceExhaustedError(None, None, "variables.data; No space left on device"),
            "run must have space. Received: No space left on device.",
        ),
        (OSError(errno.EACCES, os.strerror(errno.EACCES)), None),
        (
            RuntimeError(f"Traceback ...\nOSError: {AWS} [while running 'Read']\n"),
            f"object stores must be within reach. Received: OSError: {AWS}.",
        ),
    ],
)
def test_the_sentence_for_the_user_in_an_error(error, expected):
    found = find_user_error(error if isinstance(error, Exception) else error(), ROOT)
    assert found is None or isinstance(found, UserError)
    assert (found and str(found)) == expected


def test_a_root_that_is_a_file(tmp_path):
    (tmp_path / "run").write_text("")
    config = Config().replace("pipeline.root", str(tmp_path / "run"))
    with pytest.raises(UserError) as caught:
        run(config, None)
    assert str(caught.value) == (
        f"pipeline.root must be a folder to write to. Received: {tmp_path}/run, File exists."
    )


def test_a_root_that_another_run_has(tmp_path):
    (tmp_path / ".lock").write_text("123\n")
    config = Config().replace("pipeline.root", str(tmp_path))
    with (tmp_path / ".lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UserError, match=r"one run at a time\. Received: .*, where process 123"):
            run(config, None)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            ("--only", "Pusher", "--until", "Trainer"),
            "--until must be left out with --only. Received: Trainer.",
        ),
        (("--run-id", "night"), "--run-id must come with --only. Received: night."),
        (
            ("--only", "Pusher", "--run-id", "last night"),
            "--run-id must be letters, digits and any of _.~:+-, as in Airflow. Received: "
            "'last night'.",
        ),
    ],
)
def test_options_of_one_component(options, expected, pebr):
    assert pebr("run", "--config", "nowhere", *options) == (2, "", f"pebr: {expected}\n")


def test_a_root_in_a_bucket(pebr, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Config().replace("pipeline.root", "gs://shop/run").dump(tmp_path / "pebr.yaml")
    assert pebr("run", "--config", "pebr.yaml") == (
        2,
        "",
        "pebr: pipeline.root must be a local folder for pebr run; pebr submit runs elsewhere. "
        "Received: 'gs://shop/run'.\n",
    )
    assert os.listdir(tmp_path) == ["pebr.yaml"]


def test_a_database_out_of_reach(monkeypatch):
    monkeypatch.setenv("PEBR_METADATA_PASSWORD", "secret")
    with socket.socket() as taken:
        # Bound, so that nobody else has it, and not listening.
        taken.bind(("127.0.0.1", 0))
        url = f"mysql://pebr@127.0.0.1:{taken.getsockname()[1]}/pebr"
        with pytest.raises(UserError) as caught:
            connect(Pipeline(metadata=url))
    assert str(caught.value) == (
        "pipeline.metadata must be a MySQL server that accepts the password in "
        f"PEBR_METADATA_PASSWORD. Received: {url}, mysql_real_connect failed: errno: , error:."
    )


def test_a_port_that_there_is_not():
    with pytest.raises(UserError, match=r"pebr:99999/pebr, Port out of range 0-65535\.$"):
        connect(Pipeline(metadata="mysql://pebr@pebr:99999/pebr"))


@pytest.mark.parametrize(
    "url",
    [
        *("postgresql://pebr@db/pebr", "mysql://db/pebr"),
        *("mysql://pebr:secret@db/pebr", "mysql://pebr:sec/r@et@db/pebr"),
    ],
)
def test_a_database_is_mysql_without_a_password(url):
    with pytest.raises(ConfigError) as caught:
        Pipeline(metadata=url)
    assert str(caught.value) == (
        "metadata must be null or a MySQL database without a password, such as "
        f"mysql://user@host:3306/pebr. Received: '{re.sub('sec.*et', '***', url)}'."
    )
