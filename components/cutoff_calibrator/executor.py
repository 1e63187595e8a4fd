"""Calibrates the cut-off on held-out clicks and writes the query model that serves with it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
from absl import logging
from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types import Artifact, artifact_utils
from tfx.utils import path_utils

from components.folders import local_folder, published_folder
from components.pairs import QUERY_LIMIT, read_pairs, training_queries
from components.query_tower import QueryTower
from pebr_tf.config import Config
from pebr_tf.cutoff import (
    Calibration,
    LevelFit,
    LevelTuning,
    calibrate,
    candidate_depth,
    collect_candidates,
    fit_level_head,
    head_levels,
    level_temperatures_for,
    served_policy,
    tune_level_temperature,
)
from pebr_tf.cutoff.calibration import CALIBRATED_KNOBS, require_enough
from pebr_tf.errors import UserError
from pebr_tf.release.catalogue import EmbeddedCatalogue
from pebr_tf.release.towers import TowersDescription
from pebr_tf.release.versions import QUERY_MODEL
from serving.signatures import export_query_model

# Most queries of the training split that the level head is fitted to.
LEVEL_QUERIES = 20_000


class Executor(BaseExecutor):
    """CutoffCalibrator's executor."""

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Calibrates; writes cutoff.json, query_model/ and tuning.json.

        Raises:
          UserError: There are too few calibrate queries, or an input is invalid.
        """
        config = Config.from_mapping(json.loads(exec_properties["settings"]))
        examples = artifact_utils.get_single_instance(input_dict["examples"])
        model = artifact_utils.get_single_instance(input_dict["model"])
        with (
            local_folder(path_utils.serving_model_path(model.uri)) as towers,
            local_folder(artifact_utils.get_single_uri(input_dict["index"])) as index,
            published_folder(artifact_utils.get_single_uri(output_dict["cutoff"])) as folder,
        ):
            _calibrate(examples, towers, index, folder, config)


def _calibrate(examples: Artifact, towers: Path, index: Path, folder: Path, config: Config) -> None:
    settings, average_k = config.cutoff, config.evaluation.average_k
    clicked = read_pairs(examples, "calibrate").limited(QUERY_LIMIT)
    require_enough(len(clicked.queries), settings)
    texts = training_queries(examples, LEVEL_QUERIES)
    if not texts:
        raise UserError("the split train must have clicks. Received: none.")
    family = TowersDescription.load(towers).family
    catalogue = EmbeddedCatalogue(index)
    vectors, ids = catalogue.vectors(), catalogue.ids()
    tower = QueryTower(towers)
    queries = tower.embed(clicked.queries)
    candidates = collect_candidates(
        vectors,
        queries,
        clicked.pairs(ids),
        family,
        level_temperatures_for(settings.level_temperature),
        candidate_depth(len(queries), len(ids), average_k, settings.limit),
    )
    level_tuning = tune_level_temperature(candidates, average_k, settings.level_temperature)
    fitted = fit_level_head(
        vectors,
        tower.embed(texts),
        family,
        level_tuning.level_temperature,
        settings.level_hidden_layers,
    )
    candidates = dataclasses.replace(candidates, head_levels=head_levels(fitted.head, queries))
    policy = served_policy(settings.policy, settings, family, level_tuning.level_temperature)
    calibration = calibrate(
        policy.lists(candidates),
        queries.strata,
        settings.policy,
        family,
        level_tuning.level_temperature,
        settings,
    )
    _log(calibration, level_tuning, fitted, settings.default_knob, settings.default_value)
    calibration.save(folder)
    (folder / "tuning.json").write_text(_tuning(level_tuning, fitted), encoding="utf-8")
    moments = catalogue.moments()
    export_query_model(towers, folder / QUERY_MODEL, calibration, fitted.head, moments, config)


def _log(
    calibration: Calibration, level_tuning: LevelTuning, fitted: LevelFit, knob: str, value: float
) -> None:
    logging.info(
        "T = %g by %d calibrate queries; the level head explains %.3f of the variance.",
        level_tuning.level_temperature,
        calibration.queries,
        fitted.r_squared,
    )
    if knob in CALIBRATED_KNOBS and (message := calibration.out_of_range_message(knob, value)):
        logging.warning("The default knob is beyond what calibration reaches: %s", message)


def _tuning(level_tuning: LevelTuning, fitted: LevelFit) -> str:
    content = {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in vars(level_tuning).items()
    }
    head = {"r_squared": fitted.r_squared, "queries": fitted.queries}
    return json.dumps({**content, "level_head": head}, indent=1) + "\n"
