"""The `pebr` command: a file a subcommand, each imported only when it is called."""
