"""What several files share: `pebr` in this process, and a server in place of Vertex AI."""

import pebr_command
import pytest


@pytest.fixture
def same_code(monkeypatch):
    """Digests take a second each, and test_source.py tests them. Later tests read logs."""
    from pipeline import pipeline

    monkeypatch.setattr(pipeline, "source_digest", lambda name: name)
    monkeypatch.setattr("pipeline.quiet.set_logging", lambda: None)


@pytest.fixture
def pebr(capsys):
    """Runs `pebr`; returns exit code, output and errors."""
    return lambda *arguments: (pebr_command.run(*arguments), *capsys.readouterr())


@pytest.fixture
def server(monkeypatch):
    from vertex_server import vertex_server

    with vertex_server(monkeypatch) as running:
        yield running


@pytest.fixture(scope="session")
def key_file(tmp_path_factory):
    from vertex_server import write_key_file

    return write_key_file(tmp_path_factory.mktemp("key"))
