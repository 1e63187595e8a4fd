"""`pebr compile`: the pipeline as a file that Vertex AI or Kubeflow runs."""

from __future__ import annotations

from pathlib import Path

import click

from pebr_tf.config import Config
from pebr_tf.files import replacing_file
from pipeline.cli.cloud_request import (
    config_option,
    index_only_option,
    span_option,
    target_option,
)


@click.command(name="compile")
@config_option
@target_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write; by default pipeline.json, for Kubeflow pipeline.yaml.",
)
@index_only_option
@span_option
def compile_pipeline(
    config_file: Path, target: str, out: Path | None, index_only: bool, span: int | None
) -> None:
    """Compile the pipeline into a file for Vertex AI or Kubeflow.

    The same configuration and code give the same bytes.
    """
    config = Config.load(config_file)
    from pipeline.cloud_check import require_cloud
    from pipeline.quiet import set_logging

    require_cloud(config, target)
    set_logging()
    if target == "kubeflow":
        from pipeline.kubeflow_spec import compile_documents, to_yaml

        documents = compile_documents(config, index_only=index_only, span=span)
        spec, content = documents[0], to_yaml(documents).encode()
    else:
        from pipeline.kubeflow_v2_runner import compile_job, to_bytes

        job = compile_job(config, index_only=index_only, span=span)
        spec, content = job["pipelineSpec"], to_bytes(job)
    out = out or Path("pipeline.yaml" if target == "kubeflow" else "pipeline.json")
    with replacing_file(out) as temporary:
        temporary.write_bytes(content)
    tasks = len(spec["root"]["dag"]["tasks"])
    click.echo(f"Wrote {out}: {tasks} tasks, image {config.cloud.image}.")
