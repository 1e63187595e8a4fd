"""IndexBuilder: embeds the catalogue and builds the search index of it."""
