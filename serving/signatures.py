"""The query model: towers, law, level and calibrated knobs in one SavedModel.

docs/serving.md, "The query model alone", lists the signatures for queries. Two more serve the
components: `item` embeds the item's columns, and `serialized_examples` maps raw tf.Examples [B] to
query_embedding, item_embedding, tau, frequency, stratum, level and threshold.

z = (1 + cosine) / 2 of a query's relevant items follows Beta(alpha, beta), and a share
`noise_share` of its clicks the law of all items, Beta(background_alpha, background_beta). The list
ends at `threshold`; `expected_recall` is the share of the query's relevant items above it and
`expected_count` the number of items. NaN: a recall or share outside (0, 1), and the recall of an
`unfamiliar` query or of a knob or policy that promises none. The threshold of such a query and of
the policy top_k is the cosine of the last item of its list; policies that end lists by other ranks
have a threshold of -1. At least `floor` and at most `limit` of the items that the model holds, in
proportion to the catalogue, are at or above a threshold. Without custom op.
"""

import dataclasses
import functools
import math
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from pebr_tf.config import Config, Cutoff
from pebr_tf.cutoff.calibration import Calibration, is_unfamiliar
from pebr_tf.cutoff.knob_map import KnobMap
from pebr_tf.cutoff.knobs import ReleaseKnobs
from pebr_tf.cutoff.policies.base import Policy
from pebr_tf.cutoff.policies.plain import TopKPolicy
from pebr_tf.cutoff.policies.share import SharePolicy
from pebr_tf.distributions import Beta, background_law
from pebr_tf.distributions.level import level_of_cosines
from pebr_tf.distributions.query_law import LawWeights
from pebr_tf.errors import UserError
from pebr_tf.files import new_directory
from pebr_tf.release.catalogue import Moments
from pebr_tf.release.towers import QueryModelDescription, TowersDescription

TOWERS_SIGNATURES = ("query", "item", "serialized_examples")
# An index may compute a cosine that is smaller by a rounding.
ROUNDING = 1e-6
_TOWERS = ("embedding", "tau", "frequency", "stratum")

Tensors = dict[str, tf.Tensor]
_QUERY = tf.TensorSpec([None], tf.string, name="query")
_graph = functools.partial(tf.function, autograph=False)


@dataclass(frozen=True)
class HeldItems:
    """The items that a query model holds, which give each query its level and its background.

    Attributes:
      vectors: [S, n] of the whole catalogue, or of a random sample.
      total: N, the number of items in the catalogue.
      moments: Mean and covariance of the vectors of all N.
    """

    vectors: np.ndarray
    total: int
    moments: Moments


class QueryModel(tf.Module):
    """Everything that is known of a query before the search, from its text."""

    def __init__(self, towers: Any, calibration: Calibration, settings: Cutoff, held: HeldItems):
        """`towers` is a loaded SavedModel with TOWERS_SIGNATURES."""
        super().__init__()
        self._towers, self._calibration = towers, calibration
        knobs = ReleaseKnobs(calibration, dataclasses.replace(settings, level_source="sample"))
        self._policy, self._share = knobs.calibrated_policy, SharePolicy()
        self._default = _default(knobs, calibration)
        self._unfamiliar_items = settings.unfamiliar_items or max(calibration.floor, 1)
        self._law = LawWeights(*(tf.constant(value, tf.float64) for value in calibration.law))
        # A variable: a constant would be stored in the graph of every signature. Transposed,
        # because TensorFlow multiplies so in half the time.
        self._sample = tf.Variable(held.vectors.T, trainable=False, dtype=tf.float32)
        self._items_per_sampled = held.total / len(held.vectors)
        self._floor = math.ceil(calibration.floor / self._items_per_sampled)
        self._limit = max(int(calibration.limit / self._items_per_sampled), 1)
        self._mean = tf.constant(held.moments.mean, tf.float64)
        self._covariance = tf.constant(held.moments.covariance, tf.float64)

    @_graph(input_signature=[_QUERY])
    def serving_default(self, query: tf.Tensor) -> Tensors:
        """What is known of query texts [B], with thresholds by the release's default knob."""
        encoded, scores = self._encode(query)
        policy, cutoff, promises = self._default
        return self._ended(policy, tf.fill(tf.shape(query), cutoff), encoded, scores, promises)

    @_graph(input_signature=[_QUERY, tf.TensorSpec([None], tf.float32, name="recall")])
    def query_at(self, query: tf.Tensor, recall: tf.Tensor) -> Tensors:
        """The same, with thresholds that keep `recall` [B] on average over queries."""
        encoded, scores = self._encode(query)
        cutoffs = _cutoff(self._calibration.signature, recall)
        return self._ended(self._policy, cutoffs, encoded, scores)

    @_graph(input_signature=[_QUERY, tf.TensorSpec([None], tf.float32, name="share")])
    def share_at(self, query: tf.Tensor, share: tf.Tensor) -> Tensors:
        """The same, with thresholds that keep `share` [B] of each query's relevant items."""
        encoded, scores = self._encode(query)
        cutoffs = _cutoff(self._calibration.share, share)
        return self._ended(self._share, cutoffs, encoded, scores)

    @_graph(input_signature=[_QUERY, tf.TensorSpec([None, None], tf.float32, name="cosines")])
    def recall_at(self, query: tf.Tensor, cosines: tf.Tensor) -> Tensors:
        """The share of each query's relevant items at or above cosines [B, M]."""
        encoded, _ = self._encode(query)
        recall = self._recall(encoded, cosines)
        return {"recall": tf.where(encoded["unfamiliar"][:, tf.newaxis], float("nan"), recall)}

    @_graph(input_signature=[_QUERY])
    def encode(self, query: tf.Tensor) -> Tensors:
        """What the towers know of query texts [B]."""
        encoded = self._towers.signatures["query"](query=query)
        return {**{name: encoded[name] for name in _TOWERS}, "unfamiliar": self._unknown(encoded)}

    @_graph(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def serialized_examples(self, examples: tf.Tensor) -> Tensors:
        """Vectors of both sides of raw tf.Examples [B], and the queries' thresholds."""
        encoded = dict(self._towers.signatures["serialized_examples"](examples=examples))
        item = encoded.pop("item_embedding")
        encoded["embedding"] = encoded.pop("query_embedding")
        full, scores = self._with_law(encoded)
        policy, cutoff, promises = self._default
        ended = self._ended(policy, tf.fill(tf.shape(examples), cutoff), full, scores, promises)
        shown = ("tau", "frequency", "stratum", "level", "threshold")
        return {
            "query_embedding": ended["embedding"],
            "item_embedding": item,
            **{name: ended[name] for name in shown},
        }

    def _encode(self, query: tf.Tensor) -> tuple[Tensors, tf.Tensor]:
        return self._with_law(self._towers.signatures["query"](query=query))

    def _with_law(self, encoded: Tensors) -> tuple[Tensors, tf.Tensor]:
        """Everything but the threshold, and the cosines [B, S] of the sample."""
        embedding, tau, frequency, stratum = (encoded[name] for name in _TOWERS)
        scores = tf.matmul(embedding, self._sample)
        family, level_temperature = self._calibration.family, self._calibration.level_temperature
        level = level_of_cosines(scores, tau, family, level_temperature)
        background = background_law(embedding, self._mean, self._covariance)
        inputs = (tf.cast(value, tf.float64) for value in (tau, level, frequency))
        laws = self._law.laws(*inputs)
        full = {
            "embedding": embedding,
            "tau": tau,
            "alpha": tf.cast(laws.alpha, tf.float32),
            "beta": tf.cast(laws.beta, tf.float32),
            "noise_share": tf.cast(laws.noise_share, tf.float32),
            "background_alpha": tf.cast(background.alpha, tf.float32),
            "background_beta": tf.cast(background.beta, tf.float32),
            "level": level,
            "unfamiliar": self._unknown(encoded),
            "stratum": stratum,
            "frequency": frequency,
        }
        return full, scores

    def _unknown(self, encoded: Tensors) -> tf.Tensor:
        return is_unfamiliar(encoded["known_share"], self._calibration.least_known)

    def _ended(
        self,
        policy: Policy,
        cutoffs: tf.Tensor,
        encoded: Tensors,
        scores: tf.Tensor,
        promises: bool = True,
    ) -> Tensors:
        """Adds the thresholds of cut-offs [B], and what is expected of them."""
        nan = tf.fill(tf.shape(cutoffs), float("nan"))
        threshold, recall, count = policy.threshold(cutoffs, SimpleNamespace(**encoded)), nan, nan
        ends_at_cosine = threshold is not None
        if isinstance(policy, TopKPolicy):
            last = self._last_of(scores, tf.floor(-cutoffs) + 1)
            threshold = tf.where(tf.math.is_nan(cutoffs), nan, last)
        if threshold is None:
            threshold = -tf.ones_like(nan)
        else:
            threshold = self._bounded(tf.clip_by_value(threshold, -1.0, 1.0), scores)
            invalid = tf.math.is_nan(threshold)
            unknown = invalid | (encoded["unfamiliar"] if promises else False)
            fixed = self._last_of(scores, tf.fill(tf.shape(cutoffs), self._unfamiliar_items))
            threshold = tf.where(unknown & ~invalid, fixed, threshold)
            above = tf.cast(scores >= threshold[:, tf.newaxis], tf.float32)
            count = self._items_per_sampled * tf.reduce_sum(above, axis=1)
            count = tf.where(invalid, nan, count)
            if ends_at_cosine and promises:
                recall = self._recall(encoded, threshold[:, tf.newaxis])[:, 0]
                recall = tf.where(unknown, nan, recall)
        return {
            **encoded,
            "threshold": threshold,
            "expected_recall": recall,
            "expected_count": count,
        }

    def _last_of(self, scores: tf.Tensor, items: tf.Tensor) -> tf.Tensor:
        """[B] cosines where lists of the best `items` [B] of the catalogue end."""
        held = tf.math.ceil(tf.cast(items, tf.float32) / self._items_per_sampled)
        held = tf.clip_by_value(tf.cast(held, tf.int32), 1, min(self._limit, scores.shape[1]))
        best = tf.math.top_k(scores, tf.maximum(tf.reduce_max(held), 1)).values
        return tf.gather(best, held - 1, batch_dims=1) - ROUNDING

    def _bounded(self, threshold: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
        """Thresholds [B] that leave lists of at least the floor and at most the limit."""
        sampled = self._sample.shape[1]
        if self._floor:
            highest = tf.math.top_k(scores, min(self._floor, sampled)).values[:, -1] - ROUNDING
            threshold = tf.where(threshold > highest, highest, threshold)
        if self._limit >= sampled:
            return threshold
        counts = tf.math.count_nonzero(scores >= threshold[:, tf.newaxis], axis=1)
        # Few lists are too long, and selecting so many items takes longer than the rest.
        lowest = tf.cond(
            tf.reduce_any(counts > self._limit),
            lambda: tf.math.top_k(scores, self._limit).values[:, -1],
            lambda: tf.fill(tf.shape(threshold), -1.0),
        )
        return tf.where(threshold < lowest, lowest, threshold)

    def _recall(self, encoded: Tensors, cosines: tf.Tensor) -> tf.Tensor:
        law = Beta(encoded["alpha"][:, tf.newaxis], encoded["beta"][:, tf.newaxis])
        share = self._calibration.share
        cdf = tf.cast(law.cdf(cosines), tf.float64)
        recall = interpolate(-cdf, -share.cutoffs.astype(np.float64), share.knob_values)
        return tf.cast(recall, tf.float32)


def _default(knobs: ReleaseKnobs, calibration: Calibration) -> tuple[Policy, float, bool]:
    """The policy, the cut-off for all queries, and whether it promises, of the default knob."""
    recall = calibration.default_value
    if calibration.default_knob == "budget":
        # The query model's map is one of recalls.
        recall = float(calibration.recall.value(calibration.budget.cutoff(recall)))
    elif calibration.default_knob != "recall":
        rule = knobs.default_rule()
        return rule.policy, float(rule.cutoffs[0]), rule.is_calibrated
    return knobs.calibrated_policy, float(calibration.signature.cutoff(recall)), True


def _cutoff(knob: KnobMap, values: tf.Tensor) -> tf.Tensor:
    """[B] cut-offs of a knob's values [B]; NaN outside (0, 1)."""
    values = tf.cast(values, tf.float64)
    cutoffs = interpolate(values, knob.knob_values, knob.cutoffs.astype(np.float64))
    # NaN is invalid too: it compares false.
    valid = (values > 0) & (values < 1)
    return tf.cast(tf.where(valid, cutoffs, np.float64("nan")), tf.float32)


def interpolate(at: tf.Tensor, grid: np.ndarray, values: np.ndarray) -> tf.Tensor:
    """The values at points of any shape of a function on a grid, linear, flat beyond its ends.

    The grid [K] rises, with K of at least 2; `values` [K] are those on it.
    """
    flat = tf.reshape(at, [-1])
    right = tf.clip_by_value(tf.searchsorted(grid, flat), 1, len(grid) - 1)
    begin, end = tf.gather(grid, right - 1), tf.gather(grid, right)
    part = tf.clip_by_value((flat - begin) / (end - begin), 0.0, 1.0)
    low = tf.gather(values, right - 1)
    return tf.reshape(low + part * (tf.gather(values, right) - low), tf.shape(at))


def export_query_model(
    towers_directory: Path,
    out_directory: Path,
    calibration: Calibration,
    held: HeldItems,
    config: Config,
) -> None:
    """Writes the query model into a new folder, complete without the towers' own.

    `held` are of the index that these towers made.

    Raises:
      UserError: No such towers, or a signature that they lack.
    """
    towers_directory = Path(towers_directory)
    description = TowersDescription.load(towers_directory)
    towers = _load_towers(towers_directory)
    if held.moments.mean.shape != (description.dimension,):
        raise UserError(
            f"the moments must be of {description.dimension} dimensions, as the towers of "
            f"{towers_directory}. Received: {len(held.moments.mean)}."
        )
    model = QueryModel(towers, calibration, config.cutoff, held)
    with new_directory(Path(out_directory)) as scratch:
        tf.saved_model.save(
            model,
            str(scratch),
            signatures={
                "serving_default": model.serving_default,
                "query_at": model.query_at,
                "share_at": model.share_at,
                "recall_at": model.recall_at,
                "encode": model.encode,
                "item": towers.signatures["item"],
                "serialized_examples": model.serialized_examples,
            },
            # The model is not trained further; otherwise saving warns about custom gradients.
            options=tf.saved_model.SaveOptions(experimental_custom_gradients=False),
        )
        _forget_gradients(scratch / "saved_model.pb")
        QueryModelDescription(
            **dataclasses.asdict(description),
            policy=calibration.policy,
            moments=held.moments.fingerprint(),
        ).save(scratch)


def _forget_gradients(path: Path) -> None:
    """Removes the names of custom gradients, because loading warns about each one."""
    model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    for graph in model.meta_graphs:
        functions = graph.graph_def.library.function
        for nodes in (graph.graph_def.node, *(each.node_def for each in functions)):
            for node in nodes:
                node.attr.pop("_gradient_op_type", None)
    path.write_bytes(model.SerializeToString(deterministic=True))


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
