"""`pebr compile`: the pipeline as a file that Vertex AI runs."""

from __future__ import annotations

from pathlib import Path

import click

from pebr_tf.config import Config
from pebr_tf.files import replacing_file
from pipeline.cli.cloud_request import config_option, index_only_option, span_option


@click.command(name="compile")
@config_option
@click.option(
    "--target",
    type=click.Choice(["vertex"]),
    default="vertex",
    show_default=True,
    help="Where the pipeline runs; Vertex AI is the only target.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default="pipeline.json",
    show_default=True,
    help="File to write.",
)
@index_only_option
@span_option
def compile_pipeline(
    config_file: Path, target: str, out: Path, index_only: bool, span: int | None
) -> None:
    """Compile the pipeline into a job for Vertex AI.

    The same configuration and code give the same bytes.
    """
    del target
    config = Config.load(config_file)
    from pipeline.cloud_check import require_cloud
    from pipeline.quiet import set_logging

    require_cloud(config)
    set_logging()
    from pipeline.kubeflow_v2_runner import compile_job, to_bytes

    job = compile_job(config, index_only=index_only, span=span)
    with replacing_file(out) as temporary:
        temporary.write_bytes(to_bytes(job))
    tasks = len(job["pipelineSpec"]["root"]["dag"]["tasks"])
    click.echo(f"Wrote {out}: {tasks} tasks, image {config.cloud.image}.")
