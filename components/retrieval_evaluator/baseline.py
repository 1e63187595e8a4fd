"""The last blessed model, measured on the clicks of this run."""

import logging
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from tfx.types import Artifact
from tfx.utils import path_utils

from components.example_files import read_batches, split_files
from components.folders import local_folder
from components.pairs import ClickLogPairs
from components.towers import TowersModel
from pebr_tf.config import Cutoff
from pebr_tf.cutoff.candidates import Candidates, QueryVectors, candidate_depth, collect_candidates
from pebr_tf.cutoff.evaluation import evaluate_policies
from pebr_tf.cutoff.level_temperature import level_temperatures_for, tune_level_temperature
from pebr_tf.cutoff.policies.plain import TopKPolicy
from pebr_tf.cutoff.policies.registry import served_policy
from pebr_tf.release.evaluation import BaselineResult
from pebr_tf.release.payload import ID_COLUMN
from pebr_tf.release.towers import TowersDescription
from pebr_tf.retrieval.vectors import unit_vectors

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class ComparedClicks:
    """The clicks that both models are measured on.

    Attributes:
      test: Pairs to find.
      calibrate: Pairs that tune the level temperature.
      strata: [Q] of the test queries, as the new model has them.
    """

    test: ClickLogPairs
    calibrate: ClickLogPairs
    strata: np.ndarray
    ids: np.ndarray


def measure_baseline(
    model: Artifact,
    catalogue: Artifact,
    clicks: ComparedClicks,
    settings: Cutoff,
    average_k: tuple[int, ...],
    split: dict[str, Any],
) -> tuple[BaselineResult, dict[int, np.ndarray]] | None:
    """Measures the towers of an earlier model, with a level temperature tuned for them.

    A model of another split than `split` may have been trained on what is held out here.

    Returns:
      The figures, and the recall [Q] of each query by average. None if the model cannot be
      compared; the reason is logged.
    """
    with local_folder(path_utils.serving_model_path(model.uri)) as folder:
        description = TowersDescription.find(folder)
        if description is None:
            LOGGER.warning("No baseline: there is no earlier model that this version reads.")
            return None
        if (received := description.config.get("split")) != split:
            LOGGER.warning("No baseline: its split must be %s. Received: %s.", split, received)
            return None
        towers = TowersModel(folder)
        vectors = _embedded(towers, catalogue, clicks.ids)
        if vectors is None:
            return None
        test = replace(towers.embed_queries(clicks.test.queries), strata=clicks.strata)
        calibrate = towers.embed_queries(clicks.calibrate.queries)
    family = description.family
    level_temperatures = level_temperatures_for(settings.level_temperature)

    def candidates(queries: QueryVectors, clicked: ClickLogPairs) -> Candidates:
        depth = candidate_depth(len(queries), len(vectors), average_k, settings.limit)
        return collect_candidates(
            vectors, queries, clicked.pairs(clicks.ids), family, level_temperatures, depth
        )

    level_temperature = tune_level_temperature(
        candidates(calibrate, clicks.calibrate), average_k, settings.level_temperature
    ).level_temperature
    found = candidates(test, clicks.test)
    # The towers alone have no laws: the level takes the place of the share.
    name = "level" if settings.policy == "share" else settings.policy
    served = served_policy(name, settings, family, level_temperature)
    if served.name == "level_sample":
        # The towers alone hold no items: use the level of all items.
        found = replace(found, sample_levels=found.levels[level_temperature])
    policies = {policy.name: policy for policy in (TopKPolicy(), served)}
    results = evaluate_policies(list(policies.values()), found, average_k, served.name)
    lists = served.lists(found)
    recall = {k: lists.shares(lists.counts_at(lists.cutoff_at(k)))[1] for k in average_k}
    return BaselineResult(model.uri, description.steps, level_temperature, results), recall


def _embedded(towers: TowersModel, catalogue: Artifact, ids: np.ndarray) -> np.ndarray | None:
    """[N, n] unit vectors of the items in the order of `ids`."""
    vectors: list[np.ndarray] = []
    found: list[np.ndarray] = []
    for batch in read_batches(split_files(catalogue, "items")):
        if not found and (missing := towers.missing_columns(batch[0])):
            LOGGER.warning("No baseline: the catalogue lacks %s.", ", ".join(missing))
            return None
        embedded, columns = towers.embed_items(batch)
        vectors.append(embedded)
        found.append(columns[ID_COLUMN])
    names = np.array([name.decode("utf-8") for name in np.concatenate(found)], np.str_)
    order = np.argsort(names)
    positions = order[np.searchsorted(names, ids, sorter=order)]
    return unit_vectors("vectors", np.concatenate(vectors)[positions])
