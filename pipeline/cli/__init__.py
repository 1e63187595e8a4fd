"""Subcommands of `pebr` for pipelines, local and in the cloud; each is imported when it runs."""

COMMANDS = {
    "check-cloud": (
        "pipeline.cli.check_cloud:check_cloud",
        "List what prevents a run on Vertex AI, Kubeflow or Airflow.",
    ),
    "compile": (
        "pipeline.cli.compile:compile_pipeline",
        "Compile the pipeline for Vertex AI, Kubeflow or Airflow.",
    ),
    "run": ("pipeline.cli.run:run", "Run the pipeline: from click logs to a pushed release."),
    "schedule": (
        "pipeline.cli.schedule:schedule",
        "Compile the pipeline and schedule it on Vertex AI or Kubeflow.",
    ),
    "submit": (
        "pipeline.cli.submit:submit",
        "Compile the pipeline and run it on Vertex AI or Kubeflow.",
    ),
}
