"""Measures a model on test clicks, writes the report, and blesses the model or says why not."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from absl import logging
from tfx.components.evaluator import constants
from tfx.components.evaluator import executor as tfx_evaluator
from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.dsl.io import fileio
from tfx.types import Artifact, artifact_utils
from tfx.utils import path_utils

from components.folders import local_folder, published_folder
from components.retrieval_evaluator.baseline import measure_baseline
from components.retrieval_evaluator.measures import Subject, measure
from pebr_tf.config import Cutoff, Evaluation
from pebr_tf.cutoff import Calibration
from pebr_tf.metrics import failures, gates_of
from pebr_tf.report import write_report
from serving.encoder import EmbeddedEncoder
from serving.release import latest_release
from serving.remote import is_remote, latest_remote
from serving.signatures import TOWERS_FACTS, read_facts

EVALUATION, REPORT = "evaluation.json", "report.html"
# Of the last blessed release's evaluation, what a reader compares.
COMPARED = (
    "model",
    "data",
    "average_k",
    "policies",
    "calibration",
    "default_knob",
    "index",
    "latency",
)


class Executor(tfx_evaluator.Executor):
    """RetrievalEvaluator's executor.

    Of TFX's own it takes nothing but the name: in a container of Kubeflow v2, models are known by
    names and not by numbers, and TFX writes the name into the blessing, where the resolver of the
    last blessed model looks for it, only for executors of this class.
    """

    def __init__(self, context: BaseExecutor.Context | None = None):
        """As any executor's: Beam is not used, so none of its arguments are asked for."""
        BaseExecutor.__init__(self, context)

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Evaluates.

        Args:
          input_dict: `examples`, `model`, `index` and `cutoff`; to compare with, `catalogue` and
            `baseline`.
          output_dict: `evaluation`: evaluation.json and report.html; `blessing`: the file BLESSED
            or NOT_BLESSED, and the custom property `blessed`.
          exec_properties: `settings`, JSON of `cutoff`, `evaluation` and `origin`; `releases`,
            their folder.

        Raises:
          UserError: No test clicks, or an input that is not what it should be. A gate that fails
            raises nothing.
        """
        settings = json.loads(exec_properties["settings"])
        cutoff = Cutoff.from_mapping(settings["cutoff"])
        evaluation = Evaluation.from_mapping(settings["evaluation"])
        content = _measured(input_dict, cutoff, evaluation, settings["origin"])
        gates = gates_of(content, evaluation.gates)
        reasons = failures(gates)
        content |= {
            "gates": gates,
            "blessed": not reasons,
            "previous": _previous(exec_properties["releases"]),
        }
        with published_folder(artifact_utils.get_single_uri(output_dict["evaluation"])) as folder:
            _write(folder, content)
        _bless(artifact_utils.get_single_instance(output_dict["blessing"]), input_dict, reasons)


def _measured(
    inputs: dict[str, list[Artifact]],
    cutoff: Cutoff,
    evaluation: Evaluation,
    origin: dict[str, Any],
) -> dict[str, Any]:
    model = artifact_utils.get_single_instance(inputs["model"])
    with (
        local_folder(path_utils.serving_model_path(model.uri)) as towers,
        local_folder(artifact_utils.get_single_uri(inputs["index"])) as index,
        local_folder(artifact_utils.get_single_uri(inputs["cutoff"])) as cut,
    ):
        subject = Subject(
            facts=read_facts(towers, TOWERS_FACTS),
            calibration=Calibration.load(cut),
            encoder=EmbeddedEncoder(cut / "query_model"),
            vectors=np.load(index / "vectors.npy"),
            ids=np.load(index / "ids.npy"),
            index=index / "index",
        )
        examples = artifact_utils.get_single_instance(inputs["examples"])
        content, clicks = measure(examples, subject, cutoff, evaluation)
    baseline = None
    if inputs.get("baseline") and inputs.get("catalogue"):
        earlier, catalogue = (
            artifact_utils.get_single_instance(inputs[name]) for name in ("baseline", "catalogue")
        )
        average_k = evaluation.average_k
        baseline = measure_baseline(earlier, catalogue, clicks, cutoff, average_k, origin)
    return {**content, "baseline": baseline}


def _previous(releases: str) -> dict[str, Any] | None:
    """What to compare with, of the last release; None for a first model.

    Looked up here, and no input: each release would else make the next run evaluate anew.
    """
    last = latest_remote(releases) if is_remote(releases) else latest_release(Path(releases))
    if last is None:
        return None
    with fileio.open(os.path.join(last, EVALUATION), "rb") as file:
        content = json.loads(file.read())
    version = int(os.path.basename(last))
    return {"version": version, **{name: content.get(name) for name in COMPARED}}


def _write(folder: Path, content: dict[str, Any]) -> None:
    text = json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False)
    (folder / EVALUATION).write_text(text + "\n", encoding="utf-8")
    write_report(content, folder / REPORT)


def _bless(blessing: Artifact, inputs: dict[str, list[Artifact]], reasons: list[str]) -> None:
    """Marks the model in the way of TFX's own evaluator."""
    model = artifact_utils.get_single_instance(inputs["model"])
    blessed = not reasons
    message = "All gates are passed." if blessed else " ".join(reasons)
    blessing.set_int_custom_property(constants.ARTIFACT_PROPERTY_BLESSED_KEY, int(blessed))
    blessing.set_string_custom_property(constants.ARTIFACT_PROPERTY_BLESSING_MESSAGE_KEY, message)
    blessing.set_string_custom_property(
        constants.ARTIFACT_PROPERTY_CURRENT_MODEL_URI_KEY, model.uri
    )
    blessing.set_int_custom_property(constants.ARTIFACT_PROPERTY_CURRENT_MODEL_ID_KEY, model.id)
    name = constants.BLESSED_FILE_NAME if blessed else constants.NOT_BLESSED_FILE_NAME
    with published_folder(blessing.uri) as folder:
        (folder / name).write_text(f"{message}\n", encoding="utf-8")
    if not blessed:
        logging.warning("The model was not blessed: %s", message)
