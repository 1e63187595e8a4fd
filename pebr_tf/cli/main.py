"""Entry point of `pebr`: finds the subcommand, imports it late, turns user errors into one line."""

import importlib
import sys

import click

from pebr_tf import __version__, environment
from pebr_tf.errors import UserError

# Name -> (module:attribute, one line of help, which stands here so that `--help` imports nothing).
COMMANDS = {
    "ab": ("pebr_tf.cli.ab:ab", "Read out an A/B test: lifts, intervals and p-values by arm."),
    "bench": ("pebr_tf.cli.bench:bench", "Measure speed and recall against other libraries."),
    "check-cloud": (
        "pipeline.check_cloud_command:check_cloud",
        "List what keeps a configuration from running on Vertex AI.",
    ),
    "compile": (
        "pipeline.compile_command:compile_pipeline",
        "Compile the pipeline into a job for Vertex AI.",
    ),
    "config": ("pebr_tf.cli.config:config", "Write or check a configuration file."),
    "experiment": (
        "pebr_tf.cli.experiment:experiment",
        "Reproduce a table or a figure, with seeds and error bars.",
    ),
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
    "serve-model": (
        "serving.tf_serving.serve_model_command:serve_model",
        "Stand in for TF Serving: serve query models over gRPC.",
    ),
    "submit": (
        "pipeline.submit_command:submit",
        "Compile the pipeline and run it on Vertex AI.",
    ),
}


class LateGroup(click.Group):
    """A group whose subcommands are imported only when one of them runs."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, attribute = COMMANDS[name][0].split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LateGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--verbose", is_flag=True, help="Let TensorFlow, Beam and TFX print their own logs.")
@click.version_option(__version__, prog_name="pebr")
def cli(verbose: bool) -> None:
    """Train, index, cut off and serve two-tower retrieval models that know how far to look."""
    if verbose:
        environment.configure(verbose=True)


def main(arguments: list[str] | None = None) -> None:
    """Runs `pebr`; a user's mistake prints one sentence and exits with 2."""
    try:
        cli.main(args=arguments, prog_name="pebr", standalone_mode=True)
    except UserError as error:
        click.echo(f"pebr: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
