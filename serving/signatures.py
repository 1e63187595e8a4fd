"""The query model: towers, level head, background and calibrated knobs in one SavedModel.

    serving_default      query [B] -> embedding [B, n], tau, alpha, beta, background_alpha,
                         background_beta, level, threshold, stratum, frequency, [B] each
    query_at             query [B], cutoff [B], the recall, in (0, 1) -> the same; outside that
                         range the threshold is NaN
    item                 the item's columns -> embedding [B, n]
    serialized_examples  examples [B], raw tf.Examples -> query_embedding, item_embedding, tau,
                         frequency, stratum, level, threshold

`threshold` is the cosine where the query's list ends, with the level that the head predicts. The
retriever applies the floor and the limit. Policies that end a list by its ranks (top_k, gap,
nucleus) have no threshold before the search: it is -1 then, and the retriever ends the list. The
model has no custom op, and only TensorFlow is needed to load it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from pebr_tf.config import Config, Cutoff
from pebr_tf.cutoff.calibration import Calibration
from pebr_tf.cutoff.knobs import ReleaseKnobs
from pebr_tf.cutoff.policies import Policy
from pebr_tf.distributions import Beta, background_law
from pebr_tf.errors import UserError
from pebr_tf.files import new_directory
from pebr_tf.metrics import STRATA
from pebr_tf.models import LevelHead
from pebr_tf.release.catalogue import Moments
from pebr_tf.release.towers import QueryModelDescription, TowersDescription

TOWERS_SIGNATURES = ("query", "item", "serialized_examples")

Tensors = dict[str, tf.Tensor]


class QueryModel(tf.Module):
    """Everything that is known of a query before the search, from its text."""

    def __init__(
        self,
        towers: Any,
        description: TowersDescription,
        calibration: Calibration,
        settings: Cutoff,
        level_head: LevelHead | None,
        moments: Moments,
    ):
        """Makes the module.

        `towers` is a loaded SavedModel with the signatures query, item and serialized_examples.
        `level_head` maps vectors [B, n] and temperatures [B] to levels [B]; None for a policy
        without levels, which are 0 then.
        """
        super().__init__()
        self._towers = towers
        self._convention, self._delta_beta = description.convention, description.delta_beta
        knobs = ReleaseKnobs(calibration, settings)
        self._policy, self._default = knobs.calibrated_policy, knobs.default_rule()
        self._recalls, self._cutoffs = recall_table(calibration)
        # Saved as plain variables: a Keras layer would ask for Keras on the way in.
        self._level = _levels(level_head)
        self._level_weights = [] if level_head is None else list(level_head.variables)
        self._mean = tf.constant(moments.mean, tf.float64)
        self._covariance = tf.constant(moments.covariance, tf.float64)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="query")], autograph=False)
    def serving_default(self, query: tf.Tensor) -> Tensors:
        """What is known of query texts [B], with thresholds by the release's default knob."""
        encoded = self._encode(query)
        return {**encoded, "threshold": self._default_threshold(encoded)}

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, name="query"),
            tf.TensorSpec([None], tf.float32, name="cutoff"),
        ],
        autograph=False,
    )
    def query_at(self, query: tf.Tensor, cutoff: tf.Tensor) -> Tensors:
        """The same, with thresholds for recalls `cutoff` [B]."""
        encoded = self._encode(query)
        rows = tf.gather(self._cutoffs, encoded["stratum"])
        internal = interpolate(tf.cast(cutoff, tf.float64), self._recalls, rows)
        threshold = self._threshold(self._policy, tf.cast(internal, tf.float32), encoded)
        # NaN is invalid too: it compares false.
        valid = (cutoff > 0) & (cutoff < 1)
        return {**encoded, "threshold": tf.where(valid, threshold, float("nan"))}

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string, name="examples")], autograph=False
    )
    def serialized_examples(self, examples: tf.Tensor) -> Tensors:
        """Vectors of both sides of raw tf.Examples [B], and the queries' thresholds."""
        encoded = dict(self._towers.signatures["serialized_examples"](examples=examples))
        level = self._level(encoded["query_embedding"], encoded["tau"])
        encoded["level"] = level
        return {**encoded, "threshold": self._default_threshold(encoded)}

    def _encode(self, query: tf.Tensor) -> Tensors:
        encoded = self._towers.signatures["query"](query=query)
        embedding, tau = encoded["embedding"], encoded["tau"]
        background = background_law(embedding, self._mean, self._covariance)
        alpha = tf.cast(Beta.from_tau(tau, self._convention).alpha, tf.float32)
        return {
            "embedding": embedding,
            "tau": tau,
            "alpha": alpha,
            "beta": tf.ones_like(alpha) + self._delta_beta,
            "background_alpha": tf.cast(background.alpha, tf.float32),
            "background_beta": tf.cast(background.beta, tf.float32),
            "level": self._level(embedding, tau),
            "stratum": encoded["stratum"],
            "frequency": encoded["frequency"],
        }

    def _default_threshold(self, encoded: Tensors) -> tf.Tensor:
        internal = tf.gather(tf.constant(self._default.cutoffs), encoded["stratum"])
        return self._threshold(self._default.policy, internal, encoded)

    def _threshold(self, policy: Policy, cutoffs: tf.Tensor, encoded: Tensors) -> tf.Tensor:
        """[B] cosines where lists end; -1 if that is unknown before the search."""
        threshold = policy.threshold(cutoffs, encoded["tau"], encoded["level"])
        if threshold is None:
            threshold = -tf.ones_like(encoded["tau"])
        return tf.clip_by_value(threshold, -1.0, 1.0)


def recall_table(calibration: Calibration) -> tuple[np.ndarray, np.ndarray]:
    """The recall maps of all strata on one grid that contains the points of each.

    Returns:
      [K] rising recalls from 0 to 1, and [3, K] cut-offs by stratum, falling in a row.
    """
    maps = [calibration.map_of("recall", stratum) for stratum in range(len(STRATA))]
    recalls = np.unique(np.concatenate([[0.0, 1.0], *(each.knob_values for each in maps)]))
    # Not by `KnobMap.cutoff`: its float32 is too coarse between points so close together.
    return recalls, np.stack([np.interp(recalls, each.knob_values, each.cutoffs) for each in maps])


def interpolate(at: tf.Tensor, grid: np.ndarray, rows: tf.Tensor) -> tf.Tensor:
    """The values at points [B] of functions given on one grid, piecewise linear, flat beyond it.

    The grid [K] rises, with K of at least 2; `rows` [B, K] are the values on it.
    """
    right = tf.clip_by_value(tf.searchsorted(grid, at), 1, len(grid) - 1)
    begin, end = tf.gather(grid, right - 1), tf.gather(grid, right)
    share = tf.clip_by_value((at - begin) / (end - begin), 0.0, 1.0)
    low = tf.gather(rows, right - 1, batch_dims=1)
    return low + share * (tf.gather(rows, right, batch_dims=1) - low)


def export_query_model(
    towers_directory: Path,
    out_directory: Path,
    calibration: Calibration,
    level_head: LevelHead | None,
    moments: Moments,
    config: Config,
) -> None:
    """Writes the query model into a new folder, complete without the towers' own.

    `level_head` is built and was fitted on frozen query vectors; None for a policy without levels.
    `moments` are those of the vectors of the index that these towers made.

    Raises:
      UserError: No such towers, or a signature that they lack.
    """
    towers_directory = Path(towers_directory)
    description = TowersDescription.load(towers_directory)
    towers = _load_towers(towers_directory)
    if moments.mean.shape != (description.dimension,):
        raise UserError(
            f"the moments must be of {description.dimension} dimensions, as the towers of "
            f"{towers_directory}. Received: {len(moments.mean)}."
        )
    model = QueryModel(towers, description, calibration, config.cutoff, level_head, moments)
    with new_directory(Path(out_directory)) as scratch:
        tf.saved_model.save(
            model,
            str(scratch),
            signatures={
                "serving_default": model.serving_default,
                "query_at": model.query_at,
                "item": towers.signatures["item"],
                "serialized_examples": model.serialized_examples,
            },
            # Nothing trains on; without this, saving warns of gradients that cannot be kept.
            options=tf.saved_model.SaveOptions(experimental_custom_gradients=False),
        )
        QueryModelDescription(
            **dataclasses.asdict(description),
            policy=calibration.policy,
            moments=moments.fingerprint(),
        ).save(scratch)


def _load_towers(directory: Path) -> Any:
    try:
        towers = tf.saved_model.load(str(directory))
    except OSError as error:
        raise UserError(f"{directory} must be a SavedModel. Received: {error}.") from None
    missing = [name for name in TOWERS_SIGNATURES if name not in towers.signatures]
    if missing:
        raise UserError(
            f"{directory} must have the signatures {', '.join(TOWERS_SIGNATURES)}. "
            f"Received: {', '.join(sorted(towers.signatures)) or 'none'}."
        )
    return towers


def _levels(head: LevelHead | None) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """From vectors [B, n] and temperatures [B] to levels [B]; a function hides the layer."""
    return lambda vectors, tau: tf.zeros_like(tau) if head is None else head(vectors, tau)
