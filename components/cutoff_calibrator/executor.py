"""Calibrates the cut-off on held-out clicks and writes the query model that serves with it."""

import dataclasses
import json
import logging
from pathlib import Path

import numpy as np
from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types import Artifact, artifact_utils
from tfx.utils import path_utils

from components.artifacts import Artifacts, Properties
from components.folders import local_folder, published_folder
from components.pairs import QUERY_LIMIT, read_pairs
from components.towers import TowersModel
from pebr_tf.config import Config
from pebr_tf.config.retrieval import MOST_SAMPLED
from pebr_tf.cutoff.calibration import (
    FOLDS,
    Calibration,
    calibrate,
    is_unfamiliar,
    least_known_share,
    served_lists,
)
from pebr_tf.cutoff.candidates import candidate_depth, collect_candidates, levels_of
from pebr_tf.cutoff.law_fit import HeldOutClicks, fit_law, fit_share_map
from pebr_tf.cutoff.level_temperature import deciding_queries, level_temperatures_for, tune_policy
from pebr_tf.cutoff.policies.registry import served_policy
from pebr_tf.data import splits
from pebr_tf.data.automatic import resolve
from pebr_tf.data.log_size import LogSize
from pebr_tf.distributions import background_law
from pebr_tf.distributions.query_law import LawWeights, initial_weights
from pebr_tf.release.catalogue import EmbeddedCatalogue
from pebr_tf.release.towers import TowersDescription
from pebr_tf.release.versions import QUERY_MODEL
from pebr_tf.retrieval.exact import sample_of
from serving.signatures import HeldItems, export_query_model

LOGGER = logging.getLogger(__name__)


class CutoffCalibratorExecutor(BaseExecutor):
    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Properties
    ) -> None:
        """Calibrates; writes cutoff.json and query_model/.

        Raises:
          UserError: There are too few held-out queries, or an input is invalid.
        """
        examples = artifact_utils.get_single_instance(input_dict["examples"])
        settings = Config.from_mapping(json.loads(exec_properties["settings"]))
        config = resolve(settings, LogSize.load(examples.uri))
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
    held_out, folds = clicked, 0
    if len(clicked.queries) < settings.min_calibration_queries:
        held_out, folds = clicked.joined(read_pairs(examples, "test").limited(QUERY_LIMIT)), FOLDS
    splits.require_held_out(len(held_out.queries))
    description = TowersDescription.load(towers)
    family = description.family
    catalogue = EmbeddedCatalogue(index)
    vectors, ids, moments = catalogue.vectors(), catalogue.ids(), catalogue.moments()
    queries, pairs = TowersModel(towers).embed_queries(held_out.queries), held_out.pairs(ids)
    known_share = np.asarray(queries.known_share)
    least_known = least_known_share(known_share)
    unfamiliar = is_unfamiliar(known_share, least_known)
    queries = dataclasses.replace(queries, unfamiliar=unfamiliar)
    candidates = collect_candidates(
        vectors,
        queries,
        pairs,
        family,
        level_temperatures_for(settings.level_temperature),
        candidate_depth(len(queries), len(ids), average_k, settings.limit),
    )
    fitted = deciding_queries(np.arange(len(queries)) < len(clicked.queries))
    tuning, name = tune_policy(candidates.part(fitted), average_k, settings)
    level_temperature = tuning.level_temperature
    sample = sample_of(vectors, settings.level_sample or MOST_SAMPLED)
    levels = levels_of(sample, queries, family, level_temperature)
    background = background_law(queries.vectors, moments.mean, moments.covariance)
    known = (pairs.items >= 0) & fitted[pairs.rows]
    clicked_vectors = queries.vectors[pairs.rows[known]], vectors[pairs.items[known]]
    clicks = HeldOutClicks(
        cosines=np.clip(np.einsum("pn,pn->p", *clicked_vectors), -1, 1),
        rows=pairs.rows[known],
        tau=queries.tau,
        level=levels,
        frequency=np.asarray(queries.frequency),
        background_alpha=background.alpha.numpy(),
        background_beta=background.beta.numpy(),
        strata=queries.strata,
    )
    law = fit_law(_trained_law(description), clicks)
    share = fit_share_map(law, clicks)
    laws = law.laws(*clicks.inputs())
    candidates = dataclasses.replace(
        candidates,
        sample_levels=levels,
        queries=dataclasses.replace(queries, alpha=laws.alpha.numpy(), beta=laws.beta.numpy()),
    )
    from_sample = dataclasses.replace(settings, level_source="sample")
    policy, signature = (
        served_policy(name, each, family, level_temperature) for each in (settings, from_sample)
    )
    calibration = calibrate(
        served_lists(policy, candidates, settings),
        queries.strata,
        name,
        family,
        level_temperature,
        settings,
        average_k,
        share,
        served_lists(signature, candidates, settings),
        least_known,
        law,
        folds,
    )
    _log(calibration, len(clicks.rows), len(ids))
    calibration.save(folder)
    held = HeldItems(sample, len(ids), moments)
    export_query_model(towers, folder / QUERY_MODEL, calibration, held, config)


def _trained_law(description: TowersDescription) -> LawWeights:
    """The law head that was trained with the towers, or one that was not trained."""
    if description.law is None:
        return initial_weights()
    return LawWeights.from_mapping("the law of the towers", description.law)


def _log(calibration: Calibration, pairs: int, catalogue: int) -> None:
    LOGGER.info(
        "%s, T = %g, by %d held-out queries; the law by %d held-out pairs.",
        calibration.policy,
        calibration.level_temperature,
        calibration.queries,
        pairs,
    )
    for note in calibration.notes(calibration.default_knob, calibration.default_value, catalogue):
        LOGGER.warning("The default knob: %s", note)
