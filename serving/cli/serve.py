"""`pebr serve`: the retrieval service, until a signal."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pebr_tf.errors import UserError

if TYPE_CHECKING:
    from pebr_tf.config import Serving

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command()
@click.option("--release", type=_FOLDER, help="The folder of one release.")
@click.option("--releases", type=_FOLDER, help="A folder of releases; new ones take over.")
@click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A configuration whose section `serving` counts; else that of the release.",
)
@click.option("--host", help="Address to listen on, instead of the configured one.")
@click.option("--grpc-port", type=click.IntRange(0, 65_535), help="0 for any free port.")
@click.option("--http-port", type=click.IntRange(0, 65_535), help="0 for any free port.")
def serve(
    release: Path | None,
    releases: Path | None,
    config_file: Path | None,
    host: str | None,
    grpc_port: int | None,
    http_port: int | None,
) -> None:
    """Serve a release over gRPC and HTTP.

    SIGTERM or Ctrl-C finishes the calls under way and stops; a second one stops at once.
    """
    if (release is None) == (releases is None):
        received = "neither" if release is None else "both"
        raise UserError(
            f"exactly one of --release and --releases must be given. Received: {received}."
        )
    # Before NumPy is imported: its threads wait for work by spinning, on cores that others need.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    directory = release or releases
    assert directory is not None
    changes = {"host": host, "grpc_port": grpc_port, "http_port": http_port}
    given = {name: value for name, value in changes.items() if value is not None}
    settings = _settings(directory, config_file, given)
    from serving.service import logs
    from serving.service.supervisor import ReleaseSource, run

    logs.configure()
    run(ReleaseSource(directory, follow=releases is not None), settings)


def _settings(directory: Path, config_file: Path | None, changes: dict[str, Any]) -> Serving:
    from pebr_tf.config import Config
    from pebr_tf.release.release import find_release, load_config

    config = Config.load(config_file) if config_file else load_config(find_release(directory))
    return config.replace_all({f"serving.{name}": value for name, value in changes.items()}).serving
