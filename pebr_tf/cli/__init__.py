"""The `pebr` command. This package lists its subcommands here; each is imported when it runs."""

COMMANDS = {
    "ab": ("pebr_tf.cli.ab:ab", "Read out an A/B test: lifts, intervals and p-values by arm."),
    "config": ("pebr_tf.cli.config:config", "Write or check a configuration file."),
    "generate": (
        "pebr_tf.cli.generate:generate",
        "Make synthetic click logs with known relevance.",
    ),
    "import": ("pebr_tf.cli.import_data:import_data", "Turn public data into a click log."),
    "index": ("pebr_tf.cli.index:index", "Build a search index from vectors, or check one."),
}
