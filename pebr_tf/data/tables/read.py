"""Reads CSV, TSV, JSONL and Parquet files batch by batch, in bounded memory.

Values stay as they are in the file: `convert` turns them into text, numbers and times. This module
rejects a row only where the format is broken: a wrong number of fields, a line that is not JSON.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Literal, NamedTuple, cast, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from pebr_tf.data.tables import convert
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
# The beginning of a file, which tells how it is written.
HEAD = 1 << 16
DELIMITERS = {"csv": ",;\t|", "tsv": "\t"}
# A quoted value: what follows the closing quote, if that is no delimiter, or the end of a block.
QUOTED = re.compile(rb'(?:^|[,;\t|\n])("[^"]*(?:""[^"]*)*(?:"([^,;\t|\r\n])?|(\Z)))')
SHOWN_HEADER, SHOWN_LINE = 200, 60
# What stands for bytes that are not UTF-8.
UNKNOWN = "\N{REPLACEMENT CHARACTER}".encode()
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
FIRST_LINES = 1_000
# JSON's types -> columns; a block with any other is read line by line.
JSON_TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64()}
BROKEN = (pa.ArrowInvalid, OSError, EOFError, gzip.BadGzipFile, csv.Error)


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
    source: Source, required: Sequence[str], optional: Sequence[str] = (), time: str | None = None
) -> Iterator[Batch]:
    """Batches of a file with the required columns, and those optional ones that it has.

    If the whole file tells the day from the month, dates in the column `time` have the year first.
    """
    reader = {"csv": _csv, "tsv": _csv, "jsonl": _jsonl, "parquet": _parquet}
    batches = reader[format_of(source.name, source.format)](source, required, optional)
    try:
        yield from batches if time is None else _with_year_first(batches, source, time)
    except BROKEN as error:
        raise _unreadable(source, error) from error


def _with_year_first(batches: Iterator[Batch], source: Source, time: str) -> Iterator[Batch]:
    """Batches with the dates of a column as 2024-12-31, if their first one has such dates."""
    orders: set[str] | None = set()
    for batch in batches:
        names = batch.columns.schema.names
        if orders is None or time not in names:
            yield batch
            continue
        arrays, place = list(batch.columns.columns), names.index(time)
        if not orders and (orders := convert.date_orders(arrays[place])) == set():
            others = (each.columns.column(0) for each in read_table(source, [], [time]))
            orders = next(filter(None, map(convert.date_orders, others)), None)
        arrays[place] = convert.year_first(arrays[place], orders)
        yield replace(batch, columns=pa.RecordBatch.from_arrays(arrays, names))


def column_names(source: Source) -> list[str]:
    """The columns of a file, with repeated names; of JSON, the keys of its first lines."""
    format = format_of(source.name, source.format)
    try:
        if format == "parquet":
            with source.open() as file:
                return list(pa.parquet.ParquetFile(file).schema_arrow.names)
        with _bytes_of(source) as file:
            if format == "jsonl":
                return _keys(source, file.readlines(BLOCK))
            dialect = _Dialect.of(file, format)
            return _header(next(_record_blocks(file, dialect.quoted), b""), dialect)[0]
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
            f"{name} must end in .csv, .tsv, .jsonl or .parquet, with or without .gz: rename it, "
            f"or set data.format. Received: {PurePosixPath(name).suffix or 'no ending'}."
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
    wanted = [*required, *(name for name in optional if name in present)]
    for name in wanted:
        if (count := present.count(name)) > 1:
            raise UserError(
                f"{source.name} must have one column {name}. Received: {count} of this name."
            )
    return wanted


def _bytes_of(source: Source) -> BinaryIO:
    raw = source.open()
    file = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if source.name.endswith(COMPRESSED) else raw
    if b"\0" in file.read(HEAD).partition(b"\n")[0]:
        file.close()
        raise UserError(
            f"{source.name} must be text in UTF-8. Received: NUL bytes, as in UTF-16 or in the "
            "file of a spreadsheet."
        )
    file.seek(0)
    return file


class _Dialect(NamedTuple):
    delimiter: str
    quoted: bool

    @classmethod
    def of(cls, file: BinaryIO, format: Format) -> _Dialect:
        """How a file of delimited values is written: its first line tells."""
        first = file.read(HEAD).removeprefix(BYTE_ORDER_MARK).lstrip(b"\r\n").partition(b"\n")[0]
        file.seek(0)
        known = DELIMITERS[format]
        delimiter = next((mark for mark in known if mark.encode() in first), known[0])
        # A quote in tab-separated values is text, unless the names have quotes, too.
        return cls(delimiter, delimiter != "\t" or first.startswith(b'"'))


def _csv(source: Source, required: Sequence[str], optional: Sequence[str]) -> Iterator[Batch]:
    header: list[str] = []
    wanted: list[str] = []
    begin = 1
    with _bytes_of(source) as file:
        dialect = _Dialect.of(file, format_of(source.name, source.format))
        for block in _record_blocks(file, dialect.quoted):
            if not header:
                header, block = _header(block, dialect)
                wanted = require_columns(source, header, required, optional)
            if block.strip():
                batch = _csv_block(block, dialect, header, wanted, begin)
                begin += len(batch) + len(batch.rejected)
                yield batch
    require_columns(source, header, required)


def _record_blocks(file: BinaryIO, quoted: bool = True) -> Iterator[bytes]:
    """Blocks of whole CSV records; a line break inside quotes does not end one.

    Arrow's own streaming reader reads ahead in a thread that a Python file object does not survive.
    """
    kept = b""
    while block := file.read(BLOCK):
        kept += block
        end = kept.rfind(b"\n") + 1
        inside = quoted and kept.count(b'"', 0, end) % 2
        while end and inside and len(kept) < MAX_RECORD_BYTES:
            before = kept.rfind(b"\n", 0, end - 1) + 1
            inside = (inside + kept.count(b'"', before, end)) % 2
            end = before
        if end:
            yield kept[:end]
            kept = kept[end:]
    if kept:
        yield kept


def _header(block: bytes, dialect: _Dialect) -> tuple[list[str], bytes]:
    block = block.removeprefix(BYTE_ORDER_MARK).lstrip(b"\r\n")
    end = block.find(b"\n") + 1
    while end and dialect.quoted and block.count(b'"', 0, end) % 2:
        end = block.find(b"\n", end) + 1
    end = end or len(block)
    lines = io.StringIO(block[:end].decode("utf-8", "replace"), newline="")
    rows = csv.reader(
        lines,
        delimiter=dialect.delimiter,
        quoting=csv.QUOTE_MINIMAL if dialect.quoted else csv.QUOTE_NONE,
    )
    return next(rows, []), block[end:]


def _csv_block(
    block: bytes, dialect: _Dialect, header: Sequence[str], wanted: Sequence[str], begin: int
) -> Batch:
    table, broken = _parsed(block, dialect, header, wanted)
    if dialect.quoted and block.count(b"\n") > len(table) + len(broken):
        closed = _without_open_quotes(block)
        if len(closed) < len(block):
            table, broken = _parsed(closed, dialect, header, wanted)
    bad = np.array(broken, np.int64) + (begin - 1)
    everything = np.arange(begin, begin + len(table) + len(bad))
    rows = np.setdiff1d(everything, bad, assume_unique=True)
    nothing = pa.RecordBatch.from_pylist([], table.schema)
    [columns] = table.combine_chunks().to_batches() or [nothing]
    return Batch(columns, rows, Rejected.of(bad, "another number of fields than the header"))


def _parsed(
    block: bytes, dialect: _Dialect, header: Sequence[str], wanted: Sequence[str]
) -> tuple[pa.Table, list[int]]:
    """The wanted columns, and the numbers of the rows with another number of fields."""
    broken: list[int] = []

    def skip(row: Any) -> str:
        broken.append(row.number)
        return "skip"

    # Arrow reports no row that is not UTF-8, but keeps bytes that are not in others.
    try:
        block.decode("utf-8")
    except UnicodeDecodeError:
        text = block.decode("utf-8", "replace")
        table, broken = _parsed(text.encode(), dialect, header, wanted)
        columns = [pc.replace_substring(each, UNKNOWN, b"\xff") for each in table.columns]
        return pa.table(columns, table.column_names), broken
    # Arrow takes each name once; a repeated one is not wanted.
    names = [f"\0{n}" if name in header[:n] else name for n, name in enumerate(header)]
    table = pa.csv.read_csv(
        pa.BufferReader(block),
        read_options=pa.csv.ReadOptions(
            block_size=len(block) + 1, column_names=names, use_threads=False
        ),
        parse_options=pa.csv.ParseOptions(
            delimiter=dialect.delimiter,
            quote_char=dialect.quoted and '"',
            newlines_in_values=dialect.quoted,
            invalid_row_handler=skip,
        ),
        convert_options=pa.csv.ConvertOptions(
            column_types={name: pa.binary() for name in names},
            include_columns=wanted,
            check_utf8=False,
            strings_can_be_null=False,
        ),
    )
    return table, broken


def _without_open_quotes(block: bytes) -> bytes:
    """A block without quotes that open a value and whose next quote closes none; they join rows."""
    kept, begin, place = [], 0, 0
    while found := QUOTED.search(block, place):
        place = found.end(1)
        if found[2] is not None or found[3] is not None:
            kept.append(block[begin : found.start(1)])
            begin = place = found.start(1) + 1
    return b"".join([*kept, block[begin:]])


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
                require_columns(source, _keys(source, lines), required)
                checked = True
            if lines:
                yield _json_block(lines, np.arange(begin, begin + len(lines)), wanted)
                begin += len(lines)
    if not checked:
        _keys(source, [])


def _keys(source: Source, lines: Sequence[bytes]) -> list[str]:
    """All keys of the first objects."""
    records = [each for each in map(_record, lines[:FIRST_LINES]) if isinstance(each, dict)]
    if not records:
        first = b"".join(lines[:1]).decode("utf-8", "replace").strip()
        raise UserError(
            f"{source.name} must hold one JSON object per line. "
            f"Received: {first[:SHOWN_LINE] or 'nothing'}."
        )
    return list({key: None for each in records for key in each})


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
