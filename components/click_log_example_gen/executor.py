"""Runs the Beam pipeline from files to Examples, checks the counts, then publishes the files."""

import collections
import errno
import os
import time
from collections.abc import Sequence
from typing import Any

from tfx.components.example_gen import driver
from tfx.components.util import examples_utils
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.dsl.io import fileio
from tfx.proto import example_gen_pb2
from tfx.types import Artifact, artifact_utils

from components.artifacts import Artifacts, Properties
from components.click_log_example_gen import inputs, items, publish, texts
from components.click_log_example_gen.bundle_writer import BundleSummary
from components.click_log_example_gen.ingest import Ingest
from components.click_log_example_gen.inputs import Inputs
from components.click_log_example_gen.settings import from_exec_properties
from pebr_tf.data import splits
from pebr_tf.data.accounting import Account
from pebr_tf.data.log_size import LogSize
from pebr_tf.errors import UserError

# Folder inside an artifact: every worker reaches it, and TFX removes it if the run fails.
WORKING = ".writing"
# Suffix of a folder beside the artifact, which keeps the dead letters of a failed run.
REJECTED = ".rejected"
FULL = os.strerror(errno.ENOSPC)
FILE_FORMAT = "tfrecords_gzip"


class ClickLogExampleGenExecutor(BaseBeamExecutor):
    """Reads, checks, splits, counts and writes rows, one batch of columns at a time."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Properties
    ) -> None:
        """Writes the artifacts. A run that fails leaves them empty.

        Raises:
          UserError: A file cannot be read, too many rows are bad, or a split has no click.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        artifacts = {
            name: artifact_utils.get_single_instance(output_dict[name])
            for name in ("examples", "samples", "catalogue", "dead_letters")
        }
        uris = [artifact.uri for artifact in artifacts.values()]
        # A killed run may have left files.
        publish.empty(uris)
        publish.remove(_rejected_folder(artifacts["dead_letters"]))
        try:
            self._run(artifacts, exec_properties)
        except BaseException as error:
            publish.empty(uris)
            # Beam wraps the error of a worker but keeps its text.
            if FULL in str(error):
                raise UserError(
                    f"{artifacts['examples'].uri} must have room for the examples. "
                    f"Received: {FULL}."
                ) from error
            raise

    def _run(self, artifacts: dict[str, Artifact], exec_properties: dict[str, Any]) -> None:
        settings = from_exec_properties(exec_properties)
        found = inputs.from_exec_properties(exec_properties, settings.data)
        working = os.path.join(artifacts["examples"].uri, WORKING)
        ingest = Ingest(
            settings=settings,
            clicks=inputs.sources("data.click_log", found.click_log),
            items=inputs.sources("data.catalogue", found.catalogue),
            folder=working,
            now=int(time.time()),
        )
        fileio.makedirs(working)
        with self._make_beam_pipeline() as pipeline:
            ingest.build(pipeline)
        summaries = publish.read_summaries(working)
        accounting = _checked(ingest, summaries, found, _rejected_folder(artifacts["dead_letters"]))
        for table, name, artifact in (
            *(("clicks", name, "examples") for name in splits.NAMES),
            (texts.SPLIT, texts.SPLIT, "examples"),
            *((texts.SAMPLES, name, "samples") for name in splits.NAMES),
            (items.SPLIT, items.SPLIT, "catalogue"),
        ):
            of_table = [summary for summary in summaries if summary.table == table]
            publish.move_shards(of_table, name, artifacts[artifact].uri)
        publish.write_dead_letters(summaries, accounting, artifacts["dead_letters"].uri)
        item_count = accounting["items"]["kept"]
        text_count = sum(summary.kept.get(texts.SPLIT, 0) for summary in summaries)
        LogSize(
            rows=accounting["splits"]["train"],
            queries=text_count - item_count,
            items=item_count,
        ).save(artifacts["examples"].uri)
        publish.remove(working)
        _describe(artifacts["examples"], (*splits.NAMES, texts.SPLIT), found)
        _describe(artifacts["samples"], splits.NAMES, found)
        _describe(artifacts["catalogue"], (items.SPLIT,), found)


def _rejected_folder(letters: Artifact) -> str:
    return letters.uri.rstrip("/") + REJECTED


def _checked(
    ingest: Ingest, summaries: list[BundleSummary], found: Inputs, rejected: str
) -> dict[str, Any]:
    # Errors of the catalogue come first.
    for table in ("items", "clicks"):
        for summary in summaries:
            if summary.table == table and summary.errors:
                raise UserError(summary.errors[0])
    of_items = _account("items", ingest.items, summaries)
    of_clicks = _account("clicks", ingest.clicks, summaries)
    accounting = {
        "clicks": of_clicks.to_mapping(),
        "items": of_items.to_mapping(),
        "splits": {name: of_clicks.kept.get(name, 0) for name in splits.NAMES},
        "span": found.span,
    }
    letters = os.path.join(rejected, publish.LETTERS_FILE)
    try:
        for account in (of_items, of_clicks):
            account.check(ingest.settings.data.reject_limit, letters)
        _check_splits(ingest, summaries)
    except UserError:
        if of_items.rejected or of_clicks.rejected:
            publish.write_dead_letters(summaries, accounting, rejected)
        raise
    return accounting


def _check_splits(ingest: Ingest, summaries: list[BundleSummary]) -> None:
    rows: collections.Counter[str] = collections.Counter()
    queries: dict[str, set[str]] = {name: set() for name in splits.NAMES}
    for summary in summaries:
        rows.update(summary.clicked)
        for name, found in summary.queries.items():
            queries[name] |= found
    held_out = queries["calibrate"] | queries["test"]
    every = held_out | queries["train"]
    splits.check_splits(ingest.settings.split, rows, len(every), len(held_out))


def _account(table: str, files: Sequence[str], summaries: list[BundleSummary]) -> Account:
    """Sums the bundles of a table.

    Raises:
      RuntimeError: A row was lost or counted twice.
    """
    read = 0
    kept: collections.Counter[str] = collections.Counter()
    reasons: collections.Counter[str] = collections.Counter()
    for summary in summaries:
        if summary.table == table:
            read += summary.read
            kept.update(summary.kept)
            reasons.update(summary.reasons)
    if read != kept.total() + reasons.total():
        raise RuntimeError(
            f"{read} rows of {table} were read, {kept.total()} kept and {reasons.total()} rejected."
        )
    return Account(table, files, read, dict(kept), dict(reasons.most_common()))


def _describe(artifact: Artifact, split_names: tuple[str, ...], found: Inputs) -> None:
    artifact.split_names = artifact_utils.encode_split_names(list(split_names))
    examples_utils.set_payload_format(artifact, example_gen_pb2.FORMAT_TF_EXAMPLE)
    examples_utils.set_file_format(artifact, FILE_FORMAT)
    # `Examples.span` reads this property, not the custom one.
    artifact.span = found.span or 0
    driver.update_output_artifact(found.to_exec_properties(), artifact.mlmd_artifact)
