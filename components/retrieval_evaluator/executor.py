"""Measures a model on test clicks, writes the report, and blesses the model or gives reasons."""

import dataclasses
import json
import logging
from typing import Any

from absl import logging as absl_logging
from tfx.components.evaluator import constants
from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types import Artifact, artifact_utils
from tfx.utils import path_utils

from components.artifacts import Artifacts, Properties
from components.folders import local_folder, published_folder
from components.retrieval_evaluator.baseline import measure_baseline
from components.retrieval_evaluator.measures import Subject, measure
from pebr_tf import storage
from pebr_tf.config import Config, Cutoff, Evaluation
from pebr_tf.cutoff.calibration import Calibration
from pebr_tf.data.automatic import resolve
from pebr_tf.data.log_size import LogSize
from pebr_tf.errors import UserError
from pebr_tf.metrics.significance import Evidence
from pebr_tf.release.catalogue import EmbeddedCatalogue
from pebr_tf.release.evaluation import (
    EVALUATION_FILE,
    REPORT_FILE,
    ModelEvaluation,
    PreviousRelease,
)
from pebr_tf.release.gates import check_gates
from pebr_tf.release.towers import TowersDescription
from pebr_tf.release.versions import QUERY_MODEL, newest_served
from pebr_tf.report import write_report
from pebr_tf.report.verdict import outcome
from serving.encoder import EmbeddedEncoder

LOGGER = logging.getLogger(__name__)


class RetrievalEvaluatorExecutor(BaseExecutor):
    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Properties
    ) -> None:
        """Evaluates.

        Writes evaluation.json and report.html, and to the blessing the file BLESSED or NOT_BLESSED
        and the custom property `blessed`.

        Raises:
          UserError: There are no test clicks, or an input does not fit. A gate that fails does not
            raise.
        """
        settings = json.loads(exec_properties["settings"])
        cutoff = Cutoff.from_mapping(settings["cutoff"])
        evaluation = Evaluation.from_mapping(settings["evaluation"])
        averages = resolve(
            Config(cutoff=cutoff, evaluation=Evaluation(average_k=evaluation.average_k)),
            LogSize.load(artifact_utils.get_single_uri(input_dict["examples"])),
        ).evaluation.average_k
        evaluation = dataclasses.replace(evaluation, average_k=averages)
        result, evidence = _measured(input_dict, cutoff, evaluation, settings["split"])
        result = dataclasses.replace(
            result,
            gates=check_gates(result, evidence, evaluation.gates),
            previous=_previous(exec_properties["releases"]),
        )
        with published_folder(artifact_utils.get_single_uri(output_dict["evaluation"])) as folder:
            result.save(folder)
            write_report(result, folder / REPORT_FILE)
        blessing = artifact_utils.get_single_instance(output_dict["blessing"])
        _bless(blessing, input_dict, result)


def _measured(
    inputs: Artifacts,
    cutoff: Cutoff,
    evaluation: Evaluation,
    split: dict[str, Any],
) -> tuple[ModelEvaluation, Evidence]:
    model = artifact_utils.get_single_instance(inputs["model"])
    with (
        local_folder(path_utils.serving_model_path(model.uri)) as towers,
        local_folder(artifact_utils.get_single_uri(inputs["index"])) as index,
        local_folder(artifact_utils.get_single_uri(inputs["cutoff"])) as cut,
    ):
        catalogue = EmbeddedCatalogue(index)
        subject = Subject(
            towers=TowersDescription.load(towers),
            calibration=Calibration.load(cut),
            encoder=EmbeddedEncoder(cut / QUERY_MODEL),
            vectors=catalogue.vectors(),
            ids=catalogue.ids(),
            index=catalogue.index,
        )
        examples = artifact_utils.get_single_instance(inputs["examples"])
        result, evidence, clicks = measure(examples, subject, cutoff, evaluation)
    if inputs.get("baseline") and inputs.get("catalogue"):
        earlier, items = (
            artifact_utils.get_single_instance(inputs[name]) for name in ("baseline", "catalogue")
        )
        average_k = evaluation.average_k
        measured = measure_baseline(earlier, items, clicks, cutoff, average_k, split)
        if measured is not None:
            baseline, recall = measured
            result = dataclasses.replace(result, baseline=baseline)
            evidence = dataclasses.replace(evidence, baseline_recall=recall[result.middle_k])
    return result, evidence


def _previous(releases: str) -> PreviousRelease | None:
    """Figures of the last release; None for a first model.

    They are looked up here instead of being an input: otherwise each release would make the next
    run evaluate again.
    """
    version = newest_served(releases)
    if version is None:
        return None
    content = storage.read_bytes(f"{releases}/{version}/{EVALUATION_FILE}")
    try:
        return ModelEvaluation.from_json(content).as_previous(version)
    except UserError as error:
        LOGGER.warning("Release %s is not compared with: %s", version, error)
        return None


def _bless(blessing: Artifact, inputs: Artifacts, evaluation: ModelEvaluation) -> None:
    model = artifact_utils.get_single_instance(inputs["model"])
    blessed, message = evaluation.blessed, outcome(evaluation)
    blessing.set_int_custom_property(constants.ARTIFACT_PROPERTY_BLESSED_KEY, int(blessed))
    blessing.set_string_custom_property(constants.ARTIFACT_PROPERTY_BLESSING_MESSAGE_KEY, message)
    blessing.set_string_custom_property(
        constants.ARTIFACT_PROPERTY_CURRENT_MODEL_URI_KEY, model.uri
    )
    name = constants.BLESSED_FILE_NAME if blessed else constants.NOT_BLESSED_FILE_NAME
    with published_folder(blessing.uri) as folder:
        (folder / name).write_text(f"{message}\n", encoding="utf-8")
    if not blessed:
        # `pebr run` ends with this sentence.
        absl_logging.warning("%s", message)
