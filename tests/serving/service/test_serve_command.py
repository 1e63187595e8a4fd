"""`pebr serve`: its options; the fuzz test has a real process from start to signal."""

import pytest
from pebr_command import invoke

from pebr_tf.errors import UserError
from serving.cli.serve import _settings, serve


def test_exactly_one_source_that_has_a_release(releases, tmp_path):
    sentence = r"exactly one of --release and --releases must be given\. Received: {}\."
    with pytest.raises(UserError, match=sentence.format("neither")):
        invoke(serve)
    with pytest.raises(UserError, match=sentence.format("both")):
        invoke(serve, "--release", releases, "--releases", releases)
    with pytest.raises(UserError, match="must be a release or a folder of releases"):
        invoke(serve, "--releases", tmp_path)


def test_settings_are_the_releases_unless_a_file_or_an_option_says_otherwise(releases, tmp_path):
    assert _settings(releases, None, {}).http_port == 8601
    changed = _settings(releases, None, {"http_port": 0, "host": "::1"})
    assert (changed.http_port, changed.grpc_port, changed.host) == (0, 8600, "::1")
    path = tmp_path / "pebr.yaml"
    path.write_text("serving:\n  http_port: 7\n  drain_seconds: 2\n")
    assert _settings(releases, path, {}).http_port == 7
    assert _settings(releases, path, {"http_port": 9}).drain_seconds == 2
    with pytest.raises(UserError, match=r"serving\.http_port must differ from grpc_port"):
        _settings(releases, path, {"grpc_port": 7})
