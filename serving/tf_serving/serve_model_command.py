"""`pebr serve-model`: query models over TF Serving's gRPC services, without TF Serving."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import click

from pebr_tf.config import TfServing
from pebr_tf.errors import UserError

DRAIN_SECONDS = 10.0


@click.command("serve-model")
@click.option(
    "--models",
    type=click.Path(path_type=Path),
    required=True,
    metavar="ROOT",
    help="A folder of releases, or of SavedModels in folders named by their version.",
)
@click.option(
    "--name", default=TfServing().model, show_default=True, help="Name of the model for clients."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8500,
    show_default=True,
    help="0: any free port.",
)
@click.option(
    "--versions-kept",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Newest versions that are served.",
)
def serve_model(models: Path, name: str, host: str, port: int, versions_kept: int) -> None:
    """Stand in for TF Serving: serve query models over gRPC.

    For tests and trials where TF Serving itself cannot run; it is slower and does no batching. A
    new version under ROOT is loaded within a second. SIGTERM ends it after the calls under way.
    """
    from serving.tf_serving.model_server import serve_models
    from serving.tf_serving.model_versions import find_base_path, has_versions

    directory = find_base_path(models)
    if not has_versions(directory):
        raise UserError(
            f"ROOT must hold a folder VERSION/saved_model.pb, or releases that do. "
            f"Received: {models}."
        )
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    server = serve_models(directory, name, address, versions_kept)
    click.echo(f"{name} of {directory} is served at {server.address}, standing in for TF Serving")
    stop.wait()
    server.stop(DRAIN_SECONDS)
