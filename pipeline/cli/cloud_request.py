"""Shared by the commands of the pipeline: options, and requests to Vertex AI and Kubeflow."""

import datetime
import functools
import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from pebr_tf.cli.output import print_facts
from pebr_tf.config import Config
from pebr_tf.errors import UserError

config_option = click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="A configuration, as `pebr config init` writes it.",
)


def target_option(*names: str) -> Callable[..., Any]:
    """--target with some of the names in `pipeline.cloud_check.TARGETS`."""
    return click.option(
        "--target",
        type=click.Choice(names),
        default="vertex",
        show_default=True,
        help="Where the pipeline runs.",
    )


index_only_option = click.option(
    "--index-only",
    is_flag=True,
    help="Train nothing: build a new index and cut-off for the last blessed model.",
)


def _span_number(text: str) -> int:
    """The number that TFX gives a span: of a date, the days since 1970."""
    if re.fullmatch("[0-9]+", text):
        return int(text)
    try:
        return (datetime.date.fromisoformat(text) - datetime.date(1970, 1, 1)).days
    except ValueError:
        raise UserError(
            f"--span must be a number, or a date such as 2026-11-16. Received: {text!r}."
        ) from None


span_option = click.option(
    "--span",
    type=_span_number,
    metavar="NUMBER|DATE",
    help="The span to read; by default the latest.",
)
no_cache_option = click.option("--no-cache", is_flag=True, help="Run every component again.")
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Print the request as JSON and send nothing."
)
time_zone_option = click.option(
    "--time-zone", metavar="NAME", help="Such as Europe/Berlin; by default UTC. Not for Kubeflow."
)


def cron_option(required: bool) -> Callable[..., Any]:
    return click.option(
        "--cron",
        required=required,
        metavar="TIME",
        help="Minute, hour, day, month and weekday, such as '0 3 * * *'.",
    )


@dataclass(frozen=True)
class Destination:
    """Where a command sends its request: the options of `destination_options`."""

    target: str
    host: str | None
    token_file: Path | None

    @property
    def requests(self) -> Any:
        """The module that builds and sends requests: `pipeline.vertex` or `kubeflow_client`."""
        names = {"vertex": "pipeline.vertex", "kubeflow": "pipeline.kubeflow_client"}
        return importlib.import_module(names[self.target])

    def connect(self, config: Config) -> Any:
        """Credentials for Vertex AI, or a client of Kubeflow; a UserError without them."""
        if self.target == "kubeflow":
            return self.requests.connect(config, self.host, self.token_file)
        return self.requests.default_credentials()

    def compile(self, config: Config, **options: Any) -> Any:
        if self.target == "kubeflow":
            from pipeline.kubeflow_spec import compile_documents

            return compile_documents(config, **options)
        from pipeline.kubeflow_v2_runner import compile_job

        return compile_job(config, **options)


def destination_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds --target, --host and --token-file, and passes them on as `destination`."""

    @target_option("vertex", "kubeflow")
    @click.option("--host", metavar="URL", help="Kubeflow's API; by default kubeflow.host.")
    @click.option(
        "--token-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="File with a token for Kubeflow.",
    )
    @functools.wraps(command)
    def with_destination(
        target: str, host: str | None, token_file: Path | None, **others: Any
    ) -> None:
        for name, value in {"--host": host, "--token-file": token_file}.items():
            if target != "kubeflow" and value is not None:
                raise UserError(f"{name} must come with --target kubeflow. Received: {value}.")
        command(destination=Destination(target, host, token_file), **others)

    return with_destination


def send_request(
    config: Config,
    destination: Destination,
    dry_run: bool,
    request_of: Callable[[Any], Any],
    send: Callable[..., Any],
    **options: Any,
) -> None:
    """Compiles the pipeline and sends a request with it, or prints what would be sent.

    A dry run needs neither credentials nor a network. The `options` go to `Destination.compile`.

    Raises:
      UserError: The config cannot run on the target, there are no credentials, or the target did
        not accept it.
    """
    from pipeline.cloud_check import require_cloud
    from pipeline.quiet import set_logging

    require_cloud(config, destination.target)
    connection = None if dry_run else destination.connect(config)
    console = Console(highlight=False, quiet=dry_run)
    console.print("[dim]compiling[/dim]")
    set_logging()
    request = request_of(destination.compile(config, **options))
    if dry_run:
        click.echo(destination.requests.to_json(request))
        return
    print_facts(console, send(request, config, connection))
