"""Writes tables as Parquet, CSV or JSON lines; equal tables give equal bytes."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

FORMATS = ("parquet", "csv", "jsonl")


def write_table(table: pa.Table, path: Path) -> None:
    """Writes a table as .parquet, .csv (which cannot hold lists) or .jsonl, as the name ends."""
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path)
    elif path.suffix == ".csv":
        pa.csv.write_csv(table, path)
    else:
        with path.open("wb") as file:
            file.write(json_lines(table))


def json_lines(table: pa.Table) -> memoryview:
    """Returns the table as JSON lines in UTF-8, one object per row."""
    parts: list[pa.Array | str] = []
    for number, name in enumerate(table.column_names):
        parts += ["{" if number == 0 else ", ", f"{json.dumps(name)}: "]
        parts.append(_json_values(table[name].combine_chunks()))
    lines = pc.binary_join_element_wise(*parts, "}\n", "")
    # The text of a string array lies in one piece: it already is the file.
    return memoryview(lines.buffers()[2]) if len(lines) else memoryview(b"")


def _json_values(column: pa.Array) -> pa.Array:
    if pa.types.is_list(column.type):
        texts = pa.ListArray.from_arrays(column.offsets, _json_strings(column.values))
        return pc.binary_join_element_wise("[", pc.binary_join(texts, ", "), "]", "")
    if pa.types.is_string(column.type):
        return _json_strings(column)
    return pc.cast(column, pa.string())


def _json_strings(column: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(column, r'["\\\x00-\x1f]')).as_py():
        encoded = column.dictionary_encode()
        texts = [json.dumps(text, ensure_ascii=False) for text in encoded.dictionary.to_pylist()]
        return pa.array(texts, pa.string()).take(encoded.indices)
    return pc.binary_join_element_wise('"', column, '"', "")
