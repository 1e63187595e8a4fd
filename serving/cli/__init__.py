"""Subcommands of `pebr` for releases and the service; each is imported when it runs."""

COMMANDS = {
    "export": (
        "serving.cli.export:export",
        "Write a release as one SavedModel with ScaNN's op inside.",
    ),
    "fetch": (
        "serving.cli.fetch:fetch",
        "Copy the newest release from a bucket to a folder of releases.",
    ),
    "query": ("serving.cli.query:query", "Answer queries from a release."),
    "rollback": (
        "serving.cli.rollback:rollback",
        "Withdraw the newest release, or serve a withdrawn one again.",
    ),
    "serve": ("serving.cli.serve:serve", "Serve a release over gRPC and HTTP."),
}
