"""Sums the rows of a log by user, and finds the arm of each user.

Rows of one user are summed, whatever they are (days, sessions, searches): users were randomised, so
users vary independently. A past column, measured before the experiment, is not summed: it is
repeated in each row of the user and must be the same in all of them. A sum would grow with the
number of rows, which the experiment may change.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pebr_tf.data.tables import Batch, Source, convert, read_table
from pebr_tf.errors import UserError

# Rows are buffered up to this number before they are summed by user.
MAX_BUFFERED_ROWS = 2_000_000
# With more values, the column does not hold arms.
MAX_ARMS = 50
# Characters of a bad value that an error shows.
SHOWN = 40
# Truth values as programs write them.
TRUE, FALSE = (rf"^\s*(?i:{word})\s*$" for word in ("true", "false"))


@dataclass(frozen=True)
class Users:
    """The users [U] of an experiment.

    Attributes:
      arms: [U] int64, index of each user's arm in `names`.
      totals, past: Column -> [U] float64, summed over the rows, or measured before the experiment.
      crossing: Users left out because they were seen in more than one arm.
    """

    names: tuple[str, ...]
    ids: pa.Array
    arms: np.ndarray
    rows: np.ndarray
    totals: dict[str, np.ndarray]
    past: dict[str, np.ndarray]
    crossing: int


def columns_of(source: Source, user: str, arm: str, wanted: Sequence[str]) -> set[str]:
    """The wanted columns that have a value in the first rows of the file."""
    for batch in read_table(source, _once([user, arm]), wanted):
        schema = batch.columns.schema.names
        return {
            name
            for name in wanted
            if name in schema and batch.columns.column(name).null_count < len(batch)
        }
    raise UserError(f"{source.name} must have rows. Received: none.")


def read_users(
    source: Source, user: str, arm: str, columns: Sequence[str], past: Sequence[str] = ()
) -> Users:
    """Reads a log. Memory grows with its users, not with its rows."""
    columns, past = _once(columns), _once(past)
    held = 1 + len(past)
    aggregations = ["sum"] * (1 + len(columns)) + ["min"] * held + ["max"] * held
    arms: dict[str, int] = {}
    parts: list[pa.Table] = []
    limit = MAX_BUFFERED_ROWS
    for batch in read_table(source, _once([user, arm, *columns, *past])):
        _require_whole(source, batch)
        ids = _texts(source.name, batch, user).cast(pa.large_string())
        indices = _arm_indices(_texts(source.name, batch, arm), arms, arm)
        totals = [_amounts(source.name, batch, name) for name in columns]
        before = [indices, *(_amounts(source.name, batch, name) for name in past)]
        values = [np.ones(len(batch)), *totals, *before, *before]
        parts.append(pa.table([*values, ids], [*map(str, range(len(values))), "user"]))
        if sum(map(len, parts)) > limit:
            parts = [_by_user(parts, aggregations)]
            limit = len(parts[0]) + max(MAX_BUFFERED_ROWS, len(parts[0]))
    if not any(map(len, parts)):
        raise UserError(f"{source.name} must have rows. Received: none.")
    return _users(_by_user(parts, aggregations), arms, columns, past)


def _require_whole(source: Source, batch: Batch) -> None:
    if len(batch.rejected):
        raise UserError(
            f"{source.name} must have whole rows. Received: {batch.rejected.reasons[0]} in row "
            f"{batch.rejected.rows[0]}."
        )


def _arm_indices(values: pa.Array, arms: dict[str, int], column: str) -> np.ndarray:
    encoded = values.dictionary_encode()
    found = [arms.setdefault(name, len(arms)) for name in encoded.dictionary.to_pylist()]
    if len(arms) > MAX_ARMS:
        raise UserError(
            f"{column} must have at most {MAX_ARMS} different values, the arms. "
            f"Received: {', '.join(list(arms)[:3])}, ..."
        )
    return np.array(found, np.float64)[encoded.indices.to_numpy()]


def _by_user(parts: Sequence[pa.Table], aggregations: Sequence[str]) -> pa.Table:
    """One row per user; `aggregations` are those of all columns but the last, the user."""
    rows = pa.concat_tables(parts)
    wanted = list(zip(rows.column_names[:-1], aggregations, strict=True))
    summed = rows.group_by("user").aggregate(wanted)
    # By name, because Arrow has the user first or last, by its version.
    ordered = summed.select([*(f"{name}_{how}" for name, how in wanted), "user"])
    return ordered.rename_columns(rows.column_names)


def _users(
    whole: pa.Table, arms: dict[str, int], columns: Sequence[str], past: Sequence[str]
) -> Users:
    """The users of one arm, with the arms in the order of their names."""
    values = np.stack([column.to_numpy() for column in whole.columns[:-1]])
    sums, low, high = np.split(values, (1 + len(columns), 2 + len(columns) + len(past)))
    kept = low[0] == high[0]
    ids = whole["user"].combine_chunks().filter(pa.array(kept))
    sums, low, high = sums[:, kept], low[:, kept], high[:, kept]
    for name, least, most in zip(past, low[1:], high[1:], strict=True):
        if (least != most).any():
            index = int(np.argmax(least != most))
            raise UserError(
                f"{name} must be the same in all rows of a user, since it was before the "
                f"experiment. Received: {least[index]:g} and {most[index]:g} for user {ids[index]}."
            )
    names = tuple(sorted(arms))
    order = np.empty(len(names), np.int64)
    order[[arms[name] for name in names]] = np.arange(len(names))
    indices = order[low[0].astype(np.int64)]
    _require_arms(names, indices)
    return Users(
        names=names,
        ids=ids,
        arms=indices,
        rows=sums[0].astype(np.int64),
        totals=dict(zip(columns, sums[1:], strict=True)),
        past=dict(zip(past, low[1:], strict=True)),
        crossing=int(np.sum(~kept)),
    )


def _require_arms(names: tuple[str, ...], indices: np.ndarray) -> None:
    if len(names) < 2:
        raise UserError(f"the arms must be two or more. Received: {names[0]}.")
    for name, users in zip(names, np.bincount(indices, minlength=len(names)), strict=True):
        if users < 2:
            raise UserError(
                f"each arm must have two users or more of its own. Received: {users} in {name}."
            )


def _once(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _texts(file: str, batch: Batch, column: str) -> pa.Array:
    """[M] text; raises a UserError where a value is missing, empty or not text."""
    written = convert.text(convert.without_empty(_values(batch, column)))
    bad = written.is_null().to_numpy(zero_copy_only=False)
    if bad.any():
        _reject(file, batch, column, "have a value", bad)
    return written


def _amounts(file: str, batch: Batch, column: str) -> np.ndarray:
    """[M] float64 from 0 up; true is 1 and false 0."""
    numbers = _numbers(_values(batch, column)).to_numpy(zero_copy_only=False)
    bad = ~(np.isfinite(numbers) & (numbers >= 0))
    if bad.any():
        _reject(file, batch, column, "be a number from 0 up", bad)
    return numbers


def _numbers(values: pa.Array) -> pa.Array:
    """float64; null for what is no number."""
    if not convert.is_number(values.type):
        values = convert.text(values)
        try:
            return values.cast(pa.float64())
        except pa.ArrowInvalid:
            for pattern, digit in ((TRUE, "1"), (FALSE, "0")):
                values = pc.replace_substring_regex(values, pattern, digit)
    return convert.wide_number(values)


def _values(batch: Batch, column: str) -> pa.Array:
    if column not in batch.columns.schema.names:
        # JSON lines may leave the column out.
        return pa.nulls(len(batch), pa.string())
    return batch.columns.column(column)


def _reject(file: str, batch: Batch, column: str, required: str, bad: np.ndarray) -> None:
    index = int(np.argmax(bad))
    value = _values(batch, column)[index].as_py()
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    received = "nothing" if value is None or value == "" else str(value)[:SHOWN]
    raise UserError(
        f"{column} of {file} must {required} in every row. Received: {received} in row "
        f"{batch.rows[index]}."
    )
