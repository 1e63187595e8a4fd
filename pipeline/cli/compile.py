"""`pebr compile`: the pipeline as a file that Vertex AI, Kubeflow or Airflow runs."""

from pathlib import Path

import click

from pebr_tf.config import Config
from pebr_tf.errors import UserError
from pebr_tf.files import replacing_file
from pipeline.cli.cloud_request import (
    config_option,
    cron_option,
    index_only_option,
    span_option,
    target_option,
    time_zone_option,
)
from pipeline.cron import read_cron

NAMES = {"vertex": "pipeline.json", "kubeflow": "pipeline.yaml", "airflow": "pipeline.py"}


@click.command(name="compile")
@config_option
@target_option(*NAMES)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write; by default pipeline.json, for Kubeflow .yaml, for Airflow .py.",
)
@index_only_option
@span_option
@cron_option(required=False)
@time_zone_option
def compile_pipeline(
    config_file: Path,
    target: str,
    out: Path | None,
    index_only: bool,
    span: int | None,
    cron: str | None,
    time_zone: str | None,
) -> None:
    """Compile the pipeline for Vertex AI, Kubeflow or Airflow.

    The same configuration and code give the same bytes. Only Airflow reads the schedule in the
    file; for the others, see `pebr schedule`.
    """
    for name, value in {"--cron": cron, "--time-zone": time_zone}.items():
        if target != "airflow" and value is not None:
            raise UserError(f"{name} must come with --target airflow. Received: {value}.")
    if time_zone is not None and cron is None:
        raise UserError(f"--time-zone must come with --cron. Received: {time_zone}.")
    times = read_cron(cron, time_zone) if cron is not None else None
    config = Config.load(config_file)
    from pipeline.cloud_check import require_cloud
    from pipeline.quiet import set_logging

    require_cloud(config, target)
    set_logging()
    if target == "airflow":
        from pipeline.airflow_dag import compile_dag

        text, tasks = compile_dag(config, times, index_only=index_only, span=span)
    elif target == "kubeflow":
        from pipeline.kubeflow_spec import compile_documents, to_yaml

        documents = compile_documents(config, index_only=index_only, span=span)
        text, tasks = to_yaml(documents), documents[0]["root"]["dag"]["tasks"]
    else:
        from pipeline.kubeflow_v2_runner import compile_job, to_bytes

        job = compile_job(config, index_only=index_only, span=span)
        text, tasks = to_bytes(job).decode(), job["pipelineSpec"]["root"]["dag"]["tasks"]
    out = out or Path(NAMES[target])
    with replacing_file(out) as temporary:
        temporary.write_text(text, encoding="utf-8")
    image = "" if config.cloud.image is None else f", image {config.cloud.image}"
    click.echo(f"Wrote {out}: {len(tasks)} tasks{image}.")
