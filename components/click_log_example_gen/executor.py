"""Runs the Beam pipeline from files to Examples, looks at the counts, then publishes."""

from __future__ import annotations

import errno
import os
import time
from typing import Any

from tfx.components.example_gen import driver
from tfx.components.util import examples_utils
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.dsl.io import fileio
from tfx.proto import example_gen_pb2
from tfx.types import Artifact, artifact_utils

from components.click_log_example_gen import inputs, items, publish
from components.click_log_example_gen.accounting import Account, check_splits
from components.click_log_example_gen.ingest import Ingest
from components.click_log_example_gen.inputs import Inputs
from components.click_log_example_gen.ledger import Part
from components.click_log_example_gen.settings import from_exec_properties
from pebr_tf.data import splits
from pebr_tf.errors import UserError

# In the folder of an artifact, which every worker reaches and which TFX removes if the run fails.
WORKING = ".writing"
# Beside that folder, for the dead letters of a failed run are what its user needs.
REFUSED = ".refused"
FULL = os.strerror(errno.ENOSPC)
FILE_FORMAT = "tfrecords_gzip"


class Executor(BaseBeamExecutor):
    """Reads, checks, joins, splits and writes, a batch of columns at once."""

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Writes the artifacts, or leaves none.

        Raises:
          UserError: Files that cannot be read, too many bad rows, a split without a click.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        artifacts = {
            name: artifact_utils.get_single_instance(output_dict[name])
            for name in ("examples", "catalogue", "dead_letters")
        }
        uris = [artifact.uri for artifact in artifacts.values()]
        # A run that was killed may have left some of its files.
        publish.empty(uris)
        publish.remove(_refused(artifacts["dead_letters"]))
        try:
            self._run(artifacts, exec_properties)
        except BaseException as error:
            publish.empty(uris)
            # However Beam wraps the error of a worker, its text is kept.
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
        parts = publish.read_parts(working)
        accounting = _checked(ingest, parts, found, _refused(artifacts["dead_letters"]))
        for name in splits.NAMES:
            publish.place_shards(parts, name, artifacts["examples"].uri)
        publish.place_shards(parts, items.SPLIT, artifacts["catalogue"].uri)
        publish.place_letters(parts, accounting, artifacts["dead_letters"].uri)
        publish.remove(working)
        _describe(artifacts["examples"], splits.NAMES, found)
        _describe(artifacts["catalogue"], (items.SPLIT,), found)


def _refused(letters: Artifact) -> str:
    """Folder of the dead letters of a run that fails."""
    return letters.uri.rstrip("/") + REFUSED


def _checked(ingest: Ingest, parts: list[Part], found: Inputs, refused: str) -> dict[str, Any]:
    """The accounting; if it is bad, the dead letters are left in the folder `refused`."""
    failed = sorted((part for part in parts if part.errors), key=lambda part: part.table != "items")
    if failed:
        raise UserError(failed[0].errors[0])
    of_items = Account.of("items", ingest.items, parts)
    of_clicks = Account.of("clicks", ingest.clicks, parts)
    accounting = {
        "clicks": of_clicks.to_mapping(),
        "items": of_items.to_mapping(),
        "splits": {name: of_clicks.kept.get(name, 0) for name in splits.NAMES},
        "span": found.span,
    }
    letters = os.path.join(refused, publish.LETTERS_FILE)
    try:
        of_items.check(ingest.settings.data, letters)
        of_clicks.check(ingest.settings.data, letters)
        check_splits(ingest.settings.split, of_clicks.kept)
    except UserError:
        if of_items.refused or of_clicks.refused:
            publish.place_letters(parts, accounting, refused)
        raise
    return accounting


def _describe(artifact: Artifact, split_names: tuple[str, ...], found: Inputs) -> None:
    """Says in the metadata what the artifact holds."""
    artifact.split_names = artifact_utils.encode_split_names(list(split_names))
    examples_utils.set_payload_format(artifact, example_gen_pb2.FORMAT_TF_EXAMPLE)
    examples_utils.set_file_format(artifact, FILE_FORMAT)
    # As a property of its own kind, too: that is what `Examples.span` reads.
    artifact.span = found.span or 0
    driver.update_output_artifact(found.to_exec_properties(), artifact.mlmd_artifact)
