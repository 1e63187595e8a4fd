"""Entry point of `pebr`: finds the subcommand, imports it late, turns user errors into one line."""

import click

from pebr_tf import __version__, environment
from pebr_tf.cli.late_group import LateGroup, run_command

# Name -> (module:attribute, one line of help, which stands here so that `--help` imports nothing).
COMMANDS = {
    "ab": ("pebr_tf.cli.ab:ab", "Read out an A/B test: lifts, intervals and p-values by arm."),
    "check-cloud": (
        "pipeline.check_cloud_command:check_cloud",
        "List what keeps a configuration from running on Vertex AI.",
    ),
    "compile": (
        "pipeline.compile_command:compile_pipeline",
        "Compile the pipeline into a job for Vertex AI.",
    ),
    "config": ("pebr_tf.cli.config:config", "Write or check a configuration file."),
    "fetch": (
        "serving.fetch_command:fetch",
        "Copy the newest release from a bucket to a folder of releases.",
    ),
    "generate": (
        "pebr_tf.cli.generate:generate",
        "Make synthetic click logs with known relevance.",
    ),
    "import": ("pebr_tf.cli.importing:import_data", "Turn public data into a click log."),
    "index": ("pebr_tf.cli.index:index", "Build a search index from vectors, or check one."),
    "query": ("serving.query_command:query", "Answer queries from a release."),
    "rollback": (
        "serving.rollback_command:rollback",
        "Withdraw the newest release, or serve a withdrawn one again.",
    ),
    "run": ("pipeline.run_command:run", "Run the pipeline: from click logs to a pushed release."),
    "schedule": (
        "pipeline.schedule_command:schedule",
        "Compile the pipeline and run it on Vertex AI by the clock.",
    ),
    "serve": ("serving.service.serve_command:serve", "Serve a release over gRPC and HTTP."),
    "submit": (
        "pipeline.submit_command:submit",
        "Compile the pipeline and run it on Vertex AI.",
    ),
}


@click.group(
    cls=LateGroup, targets=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option("--verbose", is_flag=True, help="Let TensorFlow, Beam and TFX print their own logs.")
@click.version_option(__version__, prog_name="pebr")
def cli(verbose: bool) -> None:
    """Train, index, cut off and serve two-tower retrieval models that know how far to look."""
    if verbose:
        environment.configure(verbose=True)


def main(arguments: list[str] | None = None) -> None:
    """Runs `pebr`; a user's mistake prints one sentence and exits with 2."""
    run_command(cli, "pebr", arguments)


if __name__ == "__main__":
    main()
