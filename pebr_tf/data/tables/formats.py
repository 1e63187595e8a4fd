"""Which format a file has, by its name."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Literal, cast, get_args

from pebr_tf.errors import UserError

Format = Literal["csv", "tsv", "jsonl", "parquet"]
ENDINGS = {"json": "jsonl", "ndjson": "jsonl", "pq": "parquet"}
COMPRESSED = ".gz"


def format_of(name: str, given: str = "auto") -> Format:
    """The format of a file called `name`, unless one is given."""
    if given != "auto":
        return cast(Format, given)
    ending = PurePosixPath(name.removesuffix(COMPRESSED)).suffix.removeprefix(".").lower()
    ending = ENDINGS.get(ending, ending)
    if ending not in get_args(Format):
        raise UserError(
            f"{name} must end in .csv, .tsv, .jsonl or .parquet, with or without .gz, or the "
            f"format must be given. Received: {PurePosixPath(name).suffix or 'no ending'}."
        )
    return cast(Format, ending)


def is_compressed(name: str) -> bool:
    """Whether the name ends with .gz."""
    return name.endswith(COMPRESSED)
