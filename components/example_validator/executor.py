"""Runs the checks, writes the anomalies, and stops the run if there are any."""

import dataclasses
import json
import logging

from tfx.components.example_validator.executor import (
    ARTIFACT_PROPERTY_BLESSED_KEY,
    BLESSED_VALUE,
    DEFAULT_FILE_NAME,
    NOT_BLESSED_VALUE,
)
from tfx.components.statistics_gen.stats_artifact_utils import load_statistics
from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types import artifact_utils
from tfx.utils import io_utils

from components.artifacts import Artifacts, Properties
from components.example_validator.checks import (
    LEAST_EXAMPLES,
    Statistics,
    check,
    large_enough,
    relaxed,
)
from components.example_validator.findings import Finding, findings
from pebr_tf import storage
from pebr_tf.errors import UserError
from pebr_tf.release.pointers import Pointers

TRAIN = "train"
FINDINGS = "anomalies.json"
LOGGER = logging.getLogger(__name__)


class ExampleValidatorExecutor(BaseExecutor):
    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Properties
    ) -> None:
        """Validates the statistics.

        Writes `Split-NAME/SchemaDiff.pb` for each split as TFX does, and `anomalies.json`. The next
        run compares with the statistics of train if they are accepted.

        Raises:
          UserError: There are anomalies; the text lists all. TFX removes the output of a failed
            component, so anomalies.json is then written beside it, as `URI.json`.
        """
        settings = json.loads(exec_properties["settings"])
        artifact = artifact_utils.get_single_instance(input_dict["statistics"])
        splits = artifact_utils.decode_split_names(artifact.split_names)
        if TRAIN not in splits:
            raise ValueError(f"statistics must have a split train. Received: {splits}.")
        statistics = {split: load_statistics(artifact, split).proto() for split in splits}
        schema_uri = artifact_utils.get_single_uri(input_dict["schema"])
        schema = io_utils.SchemaReader().read(io_utils.get_only_uri_in_dir(schema_uri))
        if settings["inferred"]:
            schema = relaxed(schema)
        pointers = Pointers(exec_properties["pointers"], exec_properties["releases"])
        accepted = pointers.accepted_statistics()
        previous = None if accepted is None else Statistics.FromString(accepted)
        if settings["drift_limit"] is not None:
            if previous is None:
                LOGGER.warning("Drift is not checked: no earlier run was accepted.")
            elif not large_enough(statistics[TRAIN], previous):
                LOGGER.warning("Drift is not checked: it needs %d examples.", LEAST_EXAMPLES)

        output = artifact_utils.get_single_instance(output_dict["anomalies"])
        found: list[Finding] = []
        blessed = {}
        for split in splits:
            kind, control = ("skew", statistics[TRAIN]) if split != TRAIN else ("drift", previous)
            limit = settings[f"{kind}_limit"]
            anomalies = check(statistics[split], schema, kind, control, limit)
            stop = kind == "drift" or settings["skew_stops"]
            in_split = list(findings(split, anomalies, distances_stop=stop))
            path = f"{output.uri}/Split-{split}/{DEFAULT_FILE_NAME}"
            storage.write_bytes(path, anomalies.SerializeToString())
            rejected = any(finding.stops for finding in in_split)
            blessed[split] = NOT_BLESSED_VALUE if rejected else BLESSED_VALUE
            found += in_split
        for finding in found:
            if not finding.stops:
                LOGGER.warning("%s", finding)
        report = _report(found, previous is not None)
        storage.write_bytes(f"{output.uri}/{FINDINGS}", report)
        if any(finding.stops for finding in found):
            kept = f"{output.uri.rstrip('/')}.json"
            storage.write_bytes(kept, report)
            raise UserError(_rejection(found, kept))

        output.split_names = artifact_utils.encode_split_names(splits)
        output.span = artifact.span
        output.set_json_value_custom_property(ARTIFACT_PROPERTY_BLESSED_KEY, blessed)
        pointers.accept(statistics[TRAIN].SerializeToString())


def _report(found: list[Finding], compared: bool) -> bytes:
    content = {
        "accepted": not any(finding.stops for finding in found),
        "compared_with_last_accepted_run": compared,
        "anomalies": [dataclasses.asdict(finding) for finding in found],
    }
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def _rejection(found: list[Finding], path: str) -> str:
    named = "; ".join(str(finding) for finding in found if finding.stops)
    return (
        "the click log must fit its schema and the limits of drift and skew. "
        f"Received: {named}. They are also in {path}."
    )
