"""Reads CSV, TSV, JSONL and Parquet files batch by batch, in bounded memory.

Values stay as they are in the file: `convert` turns them into text, numbers and times. This module
rejects a row only where the format is broken: a wrong number of fields, a line that is not JSON.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Literal, cast, get_args

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from pebr_tf.data.tables.batch import Batch, Rejected
from pebr_tf.errors import UserError

Format = Literal["csv", "tsv", "jsonl", "parquet"]
ENDINGS = {"json": "jsonl", "ndjson": "jsonl", "pq": "parquet"}
COMPRESSED = ".gz"
# Size of a batch: bytes of text, or rows of a Parquet file.
BLOCK = 8 << 20
PARQUET_ROWS = 65_536
# Without a limit, a quote that is never closed would turn the rest of the file into one record.
MAX_RECORD_BYTES = 8 * BLOCK
DELIMITERS = {"csv": ",", "tsv": "\t"}
SHOWN_HEADER = 200
FIRST_LINES = 1_000
# JSON's types -> columns; a block with any other is read line by line.
JSON_TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64()}
BROKEN = (pa.ArrowInvalid, OSError, EOFError, gzip.BadGzipFile)


@dataclass(frozen=True)
class Source:
    """A file to read.

    Attributes:
      name: Its path, for messages and for the format.
      open: Opens its bytes; called more than once.
      format: As in the config: "auto" goes by the name.
    """

    name: str
    open: Callable[[], BinaryIO]
    format: str = "auto"

    @classmethod
    def local(cls, path: Path, format: str = "auto") -> Source:
        return cls(str(path), lambda: path.open("rb"), format)


def read_table(
    source: Source, required: Sequence[str], optional: Sequence[str] = ()
) -> Iterator[Batch]:
    """Batches of a file with the required columns, and those optional ones that it has."""
    reader = {"csv": _csv, "tsv": _csv, "jsonl": _jsonl, "parquet": _parquet}
    try:
        yield from reader[format_of(source.name, source.format)](source, required, optional)
    except BROKEN as error:
        raise _unreadable(source, error) from error


def column_names(source: Source) -> list[str]:
    """The columns of a file; of JSON, the keys of its first lines."""
    format = format_of(source.name, source.format)
    try:
        if format == "parquet":
            with source.open() as file:
                return list(pa.parquet.ParquetFile(file).schema_arrow.names)
        with _bytes_of(source) as file:
            if format == "jsonl":
                records = map(_record, file.readlines(BLOCK)[:FIRST_LINES])
                return list(
                    {key: None for each in records if isinstance(each, dict) for key in each}
                )
            return _header(next(_record_blocks(file), b""), DELIMITERS[format])[0]
    except BROKEN as error:
        raise _unreadable(source, error) from error


def _unreadable(source: Source, error: Exception) -> UserError:
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return UserError(f"{source.name} must be readable to its end. Received: {text}.")


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


def require_columns(
    source: Source, present: Sequence[str], required: Sequence[str], optional: Sequence[str] = ()
) -> list[str]:
    """The required columns, and the optional ones that are present."""
    missing = [name for name in required if name not in present]
    if missing:
        received = ", ".join(present)[:SHOWN_HEADER] or "nothing"
        raise UserError(
            f"{source.name} must have the column{'s' * (len(missing) > 1)} {', '.join(missing)}. "
            f"Received: {received}."
        )
    return [*required, *(name for name in optional if name in present)]


def _bytes_of(source: Source) -> BinaryIO:
    file = source.open()
    return cast(BinaryIO, gzip.open(file)) if source.name.endswith(COMPRESSED) else file


def _csv(source: Source, required: Sequence[str], optional: Sequence[str]) -> Iterator[Batch]:
    delimiter = DELIMITERS[format_of(source.name, source.format)]
    header: list[str] = []
    wanted: list[str] = []
    begin = 1
    with _bytes_of(source) as file:
        for block in _record_blocks(file):
            if not header:
                header, block = _header(block, delimiter)
                wanted = require_columns(source, header, required, optional)
            if block.strip():
                batch = _csv_block(block, delimiter, header, wanted, begin)
                begin += len(batch) + len(batch.rejected)
                yield batch
    require_columns(source, header, required)


def _record_blocks(file: BinaryIO) -> Iterator[bytes]:
    """Blocks of whole CSV records; a line break inside quotes does not end one.

    Arrow's own streaming reader reads ahead in a thread that a Python file object does not survive.
    """
    kept = b""
    while block := file.read(BLOCK):
        kept += block
        end = kept.rfind(b"\n") + 1
        inside = kept.count(b'"', 0, end) % 2
        while end and inside and len(kept) < MAX_RECORD_BYTES:
            before = kept.rfind(b"\n", 0, end - 1) + 1
            inside = (inside + kept.count(b'"', before, end)) % 2
            end = before
        if end:
            yield kept[:end]
            kept = kept[end:]
    if kept:
        yield kept


def _header(block: bytes, delimiter: str) -> tuple[list[str], bytes]:
    block = block.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    end = block.find(b"\n") + 1
    while end and block.count(b'"', 0, end) % 2:
        end = block.find(b"\n", end) + 1
    end = end or len(block)
    text = block[:end].decode("utf-8", "replace")
    return next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), []), block[end:]


def _csv_block(
    block: bytes, delimiter: str, header: Sequence[str], wanted: Sequence[str], begin: int
) -> Batch:
    broken: list[int] = []

    def skip(row: Any) -> str:
        broken.append(row.number)
        return "skip"

    table = pa.csv.read_csv(
        pa.BufferReader(block),
        read_options=pa.csv.ReadOptions(
            block_size=len(block) + 1, column_names=header, use_threads=False
        ),
        parse_options=pa.csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, invalid_row_handler=skip
        ),
        convert_options=pa.csv.ConvertOptions(
            column_types={name: pa.binary() for name in header},
            include_columns=wanted,
            check_utf8=False,
            strings_can_be_null=False,
        ),
    )
    bad = np.array(broken, np.int64) + (begin - 1)
    everything = np.arange(begin, begin + len(table) + len(bad))
    rows = np.setdiff1d(everything, bad, assume_unique=True)
    nothing = pa.RecordBatch.from_pylist([], table.schema)
    [columns] = table.combine_chunks().to_batches() or [nothing]
    return Batch(columns, rows, Rejected.of(bad, "another number of fields than the header"))


def _parquet(source: Source, required: Sequence[str], optional: Sequence[str]) -> Iterator[Batch]:
    with source.open() as file:
        parquet = pa.parquet.ParquetFile(file)
        wanted = require_columns(source, parquet.schema_arrow.names, required, optional)
        begin = 1
        for columns in parquet.iter_batches(PARQUET_ROWS, columns=wanted):
            yield Batch(columns, np.arange(begin, begin + len(columns)), Rejected.none())
            begin += len(columns)


def _jsonl(source: Source, required: Sequence[str], optional: Sequence[str]) -> Iterator[Batch]:
    wanted = [*required, *optional]
    begin, checked = 1, False
    with _bytes_of(source) as file:
        while block := file.readlines(BLOCK):
            lines = [line for line in block if line.strip()]
            if lines and not checked:
                require_columns(source, list(_first_record(lines)), required)
                checked = True
            if lines:
                yield _json_block(lines, np.arange(begin, begin + len(lines)), wanted)
                begin += len(lines)
    if not checked:
        raise UserError(f"{source.name} must hold one JSON object per line. Received: nothing.")


def _first_record(lines: Sequence[bytes]) -> dict[str, Any]:
    return next((each for each in map(_record, lines) if isinstance(each, dict)), {})


def _json_block(lines: Sequence[bytes], numbers: np.ndarray, wanted: Sequence[str]) -> Batch:
    """A batch from lines: all at once where they are alike and whole, else line by line."""
    first, block = _first_record(lines), b"".join(lines)
    named = [name for name in wanted if name in first or json.dumps(name).encode() in block]
    types = {name: JSON_TYPES.get(type(first.get(name))) for name in named}
    if None not in types.values():
        schema = pa.schema(types.items())
        try:
            table = pa.json.read_json(
                pa.BufferReader(block),
                read_options=pa.json.ReadOptions(use_threads=False, block_size=len(block) + 1),
                parse_options=pa.json.ParseOptions(
                    explicit_schema=schema, unexpected_field_behavior="ignore"
                ),
            )
            table.validate(full=True)
        except pa.ArrowInvalid:
            pass
        else:
            if len(table) == len(lines):
                [columns] = table.combine_chunks().to_batches()
                return Batch(columns, numbers, Rejected.none())
    return _json_lines(lines, numbers, wanted)


def _json_lines(lines: Sequence[bytes], numbers: np.ndarray, wanted: Sequence[str]) -> Batch:
    records = [_record(line) for line in lines]
    whole = np.array([isinstance(record, dict) for record in records], bool)
    values = {
        name: pa.array([_value(record.get(name)) for record in records if isinstance(record, dict)])
        for name in wanted
    }
    reasons = np.array([record for record in records if isinstance(record, str)], object)
    columns = pa.RecordBatch.from_pydict(
        {name: array.cast(pa.binary()) for name, array in values.items()}
    )
    return Batch(columns, numbers[whole], Rejected(numbers[~whole], reasons))


def _record(line: bytes) -> dict[str, Any] | str:
    """The object of a line, or why it has none."""
    try:
        record = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        return "not UTF-8"
    except ValueError:
        return "not JSON"
    return record if isinstance(record, dict) else "not a JSON object"


def _value(value: Any) -> bytes | None:
    """A JSON value as CSV would have it."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")
