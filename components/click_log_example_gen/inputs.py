"""Finds the input of a run: the span of a pattern, its files, and their fingerprint."""

from __future__ import annotations

import functools
import hashlib
import json
import posixpath
import time
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from tfx.components.example_gen import utils
from tfx.dsl.io import fileio
from tfx.proto import example_gen_pb2, range_config_pb2

from components import s3_files
from components.click_log_example_gen import bigquery
from pebr_tf.config import Data
from pebr_tf.data.local_files import IGNORED, no_file
from pebr_tf.data.tables import Source
from pebr_tf.errors import UserError

# Exec properties: the requested span, and the results of the driver.
WANTED_SPAN = "wanted_span"
CLICK_LOG, CATALOGUE = "click_log_found", "catalogue_found"
NOT_FOUND = {
    utils.SPAN_PROPERTY_NAME: 0,
    utils.VERSION_PROPERTY_NAME: None,
    utils.FINGERPRINT_PROPERTY_NAME: "",
}


@dataclass(frozen=True)
class Inputs:
    """The input of a run: patterns or BigQuery sources with the span, and its version, filled in.

    Attributes:
      span: In days since 1970 if it is a date.
      fingerprint: Digest of name, size and modification time of every file. For BigQuery it is
        different in every run, because changes of a table are not visible.
    """

    click_log: str
    catalogue: str | None
    span: int | None
    version: int | None
    fingerprint: str

    def to_exec_properties(self) -> dict[str, Any]:
        """The properties with the names of TFX; without a span it is 0."""
        return {
            CLICK_LOG: self.click_log,
            CATALOGUE: self.catalogue,
            utils.SPAN_PROPERTY_NAME: self.span or 0,
            utils.VERSION_PROPERTY_NAME: self.version,
            utils.FINGERPRINT_PROPERTY_NAME: self.fingerprint,
        }


def from_exec_properties(properties: dict[str, Any], data: Data) -> Inputs:
    """The result of the driver; without a driver, the input is resolved here."""
    if CLICK_LOG not in properties:
        return resolve(data, properties.get(WANTED_SPAN))
    has_span = _has_span(data.click_log) or WANTED_SPAN in properties
    version = properties.get(utils.VERSION_PROPERTY_NAME)
    # Kubeflow v2 passes all numbers as floating point.
    return Inputs(
        properties[CLICK_LOG],
        properties.get(CATALOGUE),
        int(properties[utils.SPAN_PROPERTY_NAME]) if has_span else None,
        None if version is None else int(version),
        properties[utils.FINGERPRINT_PROPERTY_NAME],
    )


def resolve(data: Data, wanted_span: int | None = None) -> Inputs:
    """Fills in the wanted span, or else the latest of the click log, in both patterns.

    Raises:
      UserError: The span does not exist, or a pattern is invalid.
    """
    log, span, version = _with_span("data.click_log", data.click_log, wanted_span)
    catalogue = data.catalogue
    if catalogue is not None and (bigquery.is_source(catalogue) or _has_span(catalogue)):
        if span is None and not bigquery.is_source(catalogue):
            raise UserError(
                "data.catalogue must have no span where data.click_log has none. "
                f"Received: {catalogue}."
            )
        catalogue, _, _ = _with_span("data.catalogue", catalogue, span)
    places = {"click_log": log} if catalogue is None else {"click_log": log, "catalogue": catalogue}
    digests = [f"{name}:{_fingerprint(where)}" for name, where in places.items()]
    return Inputs(log, catalogue, span, version, ",".join(digests))


def sources(key: str, where: str | None) -> list[str]:
    """The files of a pattern, sorted by name, or one BigQuery source; empty for None."""
    if where is None:
        return []
    if bigquery.is_source(where) or (fileio.exists(where) and not fileio.isdir(where)):
        return [where]
    files = [name for name in _glob(where) if not posixpath.basename(name).startswith(IGNORED)]
    if not files:
        raise no_file(key, where, fileio.isdir(where))
    return files


def source_of(name: str, format: str) -> Source:
    """A file on S3, MinIO or any file system of Beam."""
    return Source(name, functools.partial(_open, name), format)


def _open(name: str) -> BinaryIO:
    if s3_files.is_s3(name):
        return s3_files.open_file(name)
    return cast(BinaryIO, FileSystems.open(name, compression_type=CompressionTypes.UNCOMPRESSED))


def _glob(pattern: str) -> list[str]:
    return sorted(str(name) for name in fileio.glob(pattern) if not fileio.isdir(name))


def _has_span(pattern: str) -> bool:
    if bigquery.is_source(pattern):
        return False
    try:
        return any(utils.verify_split_pattern_specs(_split_of(pattern)))
    except ValueError as error:
        raise UserError(f"{pattern} must be a valid pattern. Received: {error}.") from None


def _with_span(key: str, pattern: str, wanted: int | None) -> tuple[str, int | None, int | None]:
    if bigquery.is_source(pattern):
        # The parameters that TFX fills in begin like this.
        if wanted is None and "@span_" in pattern:
            raise UserError(f"{key} must be read with a span. Received: {pattern}.")
        filled = pattern if wanted is None else utils.get_query_for_span(pattern, wanted)
        return filled, wanted, None
    if not _has_span(pattern):
        if wanted is not None:
            raise UserError(
                f"{key} must have a place for the span ({{SPAN}} or {{YYYY}}, {{MM}} and {{DD}}) "
                f"where one is asked for. Received: {pattern}."
            )
        return pattern, None, None
    split, only = _split_of(pattern), None
    if wanted is not None:
        static = range_config_pb2.StaticRange(start_span_number=wanted, end_span_number=wanted)
        only = range_config_pb2.RangeConfig(static_range=static)
    try:
        # Resolves the pattern inside the split.
        _, span, version = utils.calculate_splits_fingerprint_span_and_version("", [split], only)
    except ValueError as error:
        which = "a span" if wanted is None else f"span {wanted}"
        raise UserError(
            f"{key} must match files of {which}. Received: {pattern}: {error}."
        ) from None
    return split.pattern, span, version


def _split_of(pattern: str) -> example_gen_pb2.Input.Split:
    return example_gen_pb2.Input.Split(name="files", pattern=pattern)


def _fingerprint(where: str) -> str:
    if bigquery.is_source(where):
        return f"bigquery at {time.time_ns()}"
    states = []
    for name in _glob(where):
        if s3_files.is_s3(name):
            info = s3_files.info_of(name)
            states.append([name, info.size, info.mtime_ns])
            continue
        # The stat of TFX has whole seconds only.
        state = FileSystems.get_filesystem(name).metadata(name)
        states.append([name, state.size_in_bytes, state.last_updated_in_seconds])
    return hashlib.sha256(json.dumps(states).encode()).hexdigest()
