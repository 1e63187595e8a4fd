"""IndexBuilder: embeds the catalogue and builds the search index of it."""

from components.index_builder.component import IndexBuilder

__all__ = ["IndexBuilder"]
