"""The metadata in a MySQL server, MariaDB of Debian's packages, instead of a SQLite file."""

import functools
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from pebr_process import pebr
from tiny_world import RUN, write_world

SEARCHED = f"{os.environ['PATH']}:/usr/sbin"
SETUP = "CREATE USER pebr@'%' IDENTIFIED BY 'a-password'; GRANT ALL ON pebr.* TO pebr@'%'"
pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def server():
    """The address of a server that starts empty; it does not run as root."""
    names = ("mariadb-install-db", "mariadbd", "mariadb")
    programs = [shutil.which(name, path=SEARCHED) for name in names]
    if None in programs:
        pytest.skip("mariadb-server must be installed")
    install, daemon, client = programs
    user = {"user": "nobody", "extra_groups": []} if os.getuid() == 0 else {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name, socket.socket() as free:
        folder = Path(name)
        if user:
            shutil.chown(folder, "nobody")
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        options = ["--no-defaults", f"--datadir={folder}/data"]
        first = ("--auth-root-authentication-method=normal", "--skip-test-db")
        subprocess.run([install, *options, *first], check=True, capture_output=True, **user)
        where = (f"--port={port}", "--bind-address=127.0.0.1", f"--socket={folder}/socket")
        running = subprocess.Popen(
            [daemon, *options, *where], stderr=subprocess.DEVNULL, cwd=folder, **user
        )
        try:
            set_up = [client, "--no-defaults", "-uroot", f"--socket={folder}/socket", "-e", SETUP]
            for _ in range(100):
                if subprocess.run(set_up, capture_output=True).returncode == 0:
                    break
                time.sleep(0.1)
            yield f"mysql://pebr@127.0.0.1:{port}/pebr"
        finally:
            running.terminate()
            running.wait()


def set_password(password):
    os.environ["PEBR_METADATA_PASSWORD"] = password


def test_runs_find_each_other_in_the_database(server, tmp_path):
    write_world(tmp_path)
    with (tmp_path / "pebr.yaml").open("a") as file:
        file.write(f"pipeline: {{metadata: '{server}'}}\n")

    def run(*options, password="a-password"):
        return pebr(tmp_path, *RUN, *options, hooks=[functools.partial(set_password, password)])

    first = ["ClickLogExampleGen", "StatisticsGen"]
    done = run("--until", "StatisticsGen")
    assert (done.code, done.ran()) == (0, first), done.err
    done = run("--until", "StatisticsGen")
    assert done.states() == dict.fromkeys(first, "cached")
    done = run("--only", "SchemaGen")
    assert (done.code, done.ran()) == (0, ["SchemaGen"]), done.err
    assert not (tmp_path / "run/metadata.sqlite").exists()
    done = run("--only", "SchemaGen", password="another")
    assert done.code == 2
    assert done.err.splitlines()[-1].startswith(
        "pebr: pipeline.metadata must be a MySQL server that accepts the password in "
        f"PEBR_METADATA_PASSWORD. Received: {server}, "
    )
