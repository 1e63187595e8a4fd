"""Fits the law head to held-out clicks, and the one map that makes its shares true on average."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import tensorflow as tf
from scipy.optimize import minimize
from scipy.special import betainc, betaincinv

from pebr_tf.cutoff.knob_map import KnobMap
from pebr_tf.distributions import Beta
from pebr_tf.distributions.query_law import FITTED, LawParameters, LawWeights

MOST_ITERATIONS = 300
# Penalty on squared weights, and its factor for each group of weights.
PENALTY, PENALTIES = 1e-3, {"linear": 1.0, "inner": 0.3, "outer": 1.0, "noise": 3.0}
SHARES = np.linspace(0.0, 1.0, 101)


@dataclass(frozen=True)
class HeldOutClicks:
    """Cosines of clicked pairs that no tower learned from, and what is known of their queries.

    Attributes:
      cosines: [P] of the pairs.
      rows: [P] indices of their queries.
      tau, level, frequency: [Q] inputs of the law head.
      background_alpha, background_beta: [Q] Beta law of the cosines of all items.
      strata: [Q] indices into STRATA.
    """

    cosines: np.ndarray
    rows: np.ndarray
    tau: np.ndarray
    level: np.ndarray
    frequency: np.ndarray
    background_alpha: np.ndarray
    background_beta: np.ndarray
    strata: np.ndarray

    def weights(self) -> np.ndarray:
        """[P] weights that sum to 1, with the same sum for every query."""
        counts = np.bincount(self.rows, minlength=len(self.tau))
        return 1.0 / (counts[self.rows] * np.count_nonzero(counts))

    def inputs(self) -> tuple[np.ndarray, ...]:
        """[Q] inputs of the law head, in float64."""
        return tuple(each.astype(np.float64) for each in (self.tau, self.level, self.frequency))

    def laws(self, weights: LawWeights) -> tuple[LawParameters, Beta]:
        """[P] laws of the pairs' queries, and their backgrounds, in float64."""
        laws = LawParameters(*(tf.gather(v, self.rows) for v in weights.laws(*self.inputs())))
        backgrounds = (self.background_alpha, self.background_beta)
        return laws, Beta(*(value.astype(np.float64)[self.rows] for value in backgrounds))


def fit_law(start: LawWeights, clicks: HeldOutClicks) -> LawWeights:
    """Fits the head to the clicks, every query weighing the same.

    First the likelihood is maximised. Where no Beta law has the shape of the clicks, it prefers
    laws that are too wide. So the biases, and the weights of the frequency, are then moved to where
    the clicks transformed by their laws are most nearly uniform, over all queries and within each
    stratum. A penalty keeps few clicks from moving them far.

    The inputs are standardised and their range taken from these queries. Starts from `start`.
    """
    likely = _most_likely(_standardised(start, clicks), clicks)
    distance_to_uniform = _distance_to_uniform(clicks)

    def moved(shift: np.ndarray) -> LawWeights:
        linear = likely.linear.copy()
        linear[2] += shift[2:]
        return likely._replace(bias=likely.bias + shift[:2], linear=linear)

    found = minimize(
        lambda shift: distance_to_uniform(moved(shift)) + PENALTY * np.sum(shift**2),
        np.zeros(4),
        method="Powell",
        options={"xtol": 1e-2, "ftol": 1e-3},
    )
    return moved(found.x)


def _distance_to_uniform(clicks: HeldOutClicks) -> Callable[[LawWeights], float]:
    """The Cramer-von Mises distance of the transformed clicks, of all and of each stratum.

    A stratum weighs as much as the share of the queries that it has, so that few of them do not
    move the law far.
    """
    rows, z = clicks.rows, (1 + clicks.cosines) / 2
    inputs, weights = clicks.inputs(), clicks.weights()
    background = betainc(clicks.background_alpha[rows], clicks.background_beta[rows], z)
    strata = clicks.strata[rows]
    groups = [np.arange(len(rows)), *(np.flatnonzero(strata == each) for each in np.unique(strata))]

    def distance(law: LawWeights) -> float:
        alpha, beta, noise = (each[rows] for each in law.numpy_laws(*inputs))
        below = (1 - noise) * betainc(alpha, beta, z) + noise * background
        total = 0.0
        for group in groups:
            order = group[np.argsort(below[group])]
            share = weights[order]
            middle = (np.cumsum(share) - share / 2) / share.sum()
            total += float(np.sum(share * (middle - below[order]) ** 2))
        return total

    return distance


def _most_likely(start: LawWeights, clicks: HeldOutClicks) -> LawWeights:
    shapes = [np.shape(getattr(start, name)) for name in FITTED]
    sizes = [int(np.prod(shape)) for shape in shapes]
    cosines, pair_weights = tf.constant(clicks.cosines, tf.float64), clicks.weights()

    def rebuilt(flat: tf.Tensor | np.ndarray) -> LawWeights:
        parts = tf.split(flat, sizes)
        fitted = {
            name: tf.reshape(part, shape)
            for name, part, shape in zip(FITTED, parts, shapes, strict=True)
        }
        return start._replace(**fitted)

    @tf.function(autograph=False)
    def value_and_gradient(flat: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch(flat)
            weights = rebuilt(flat)
            laws, background = clicks.laws(weights)
            loss = -tf.reduce_sum(pair_weights * laws.click_law(background).log_prob(cosines))
            for name, factor in PENALTIES.items():
                value = getattr(weights, name)
                # The noise share itself is free; its slope is not.
                value = value[1:] if name == "noise" else value
                loss += PENALTY * factor * tf.reduce_sum(tf.square(value))
        return loss, tape.gradient(loss, flat)

    found = minimize(
        lambda flat: tuple(each.numpy() for each in value_and_gradient(tf.constant(flat))),
        np.concatenate([np.ravel(getattr(start, name)) for name in FITTED]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": MOST_ITERATIONS},
    )
    return LawWeights(*(np.asarray(value, np.float64) for value in rebuilt(found.x)))


def fit_share_map(weights: LawWeights, clicks: HeldOutClicks) -> KnobMap:
    """The share of the relevant items that a share of the law keeps, and back.

    At each share the clicks that the law's thresholds keep are counted, less those that the
    background is expected to have there. The cut-off of the map is the law's CDF.
    """
    laws = weights.laws(*clicks.inputs())
    alpha, beta, noise = (value.numpy() for value in laws)
    rows, pair_weights = clicks.rows, clicks.weights()
    query_weights = np.bincount(rows, pair_weights / (1 - noise[rows]), minlength=len(alpha))
    above = betainc(beta[rows], alpha[rows], (1 - clicks.cosines) / 2)
    kept = []
    for share in SHARES[1:-1]:
        z = betaincinv(alpha, beta, 1 - share)
        background = betainc(clicks.background_beta, clicks.background_alpha, 1 - z)
        counted = np.sum(pair_weights * (above <= share) / (1 - noise[rows]))
        kept.append(float(counted - np.sum(query_weights * noise * background)))
    rising = np.maximum.accumulate(np.clip([0.0, *kept, 1.0], 0.0, 1.0))
    return KnobMap.through(rising, 1 - SHARES, len(clicks.tau))


def _standardised(weights: LawWeights, clicks: HeldOutClicks) -> LawWeights:
    """The same head for inputs that are standardised over these queries."""
    tau, level, frequency = clicks.inputs()
    inputs = np.stack([np.log(tau), tau * level, np.log1p(frequency)], axis=1)
    center, scale = inputs.mean(axis=0), np.maximum(inputs.std(axis=0), 1e-3)
    factor, shift = scale / weights.scale, (center - weights.center) / weights.scale
    x = (inputs - center) / scale
    noise = np.array([weights.noise[0] + weights.noise[1] * shift[2], weights.noise[1] * factor[2]])
    return weights._replace(
        bias=weights.bias + shift @ weights.linear,
        linear=weights.linear * factor[:, None],
        inner_bias=weights.inner_bias + shift @ weights.inner,
        inner=weights.inner * factor[:, None],
        noise=noise,
        center=center,
        scale=scale,
        low=x.min(axis=0),
        high=x.max(axis=0),
    )
