"""The law of held-out clicks: fitted on the calibrate split, read on test queries."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import tensorflow as tf
from scipy.special import betainc, betaincinv

from experiments.corpora import Corpus
from experiments.study import SOURCES as STUDY_SOURCES
from experiments.study import Study
from pebr_tf.config.retrieval import MOST_SAMPLED
from pebr_tf.cutoff.calibration import UNFAMILIAR, calibrate, recall_map
from pebr_tf.cutoff.candidates import levels_of
from pebr_tf.cutoff.law_fit import HeldOutClicks, fit_law, fit_share_map
from pebr_tf.cutoff.policies.level import LevelPolicy, SampleLevelPolicy
from pebr_tf.distributions import background_law
from pebr_tf.distributions.query_law import initial_weights
from pebr_tf.metrics.ranked import RankedLists
from pebr_tf.metrics.strata import STRATA
from pebr_tf.models.text import tokens_of
from pebr_tf.release.catalogue import Moments
from pebr_tf.retrieval.exact import sample_of
from serving.signatures import ROUNDING

SOURCES = (*STUDY_SOURCES, "pebr_tf.retrieval.exact", "experiments.law_measured")
FOREIGN = 1_000
# To tell how far off the worst decile is by chance.
DRAWS = 100
SHARES = tuple(round(0.5 + 0.05 * step, 2) for step in range(10))
GROUPS = ("overall", *STRATA)
# As many items as a query model holds by default.


def measure_law(towers: Study, level_temperature: float) -> dict[str, Any]:
    """What the law, its map and the signature's recall keep on test queries.

    Returns:
      `raw` and `mapped`: [P] transformed clicks, with their `weights` [P] and `strata` [P]. Measure
      to group to errors, positive where more is kept: `share`, clicks kept less those expected, at
      each of SHARES; `recall`, recall less what is requested of `query_at`, at SHARES; `deciles`
      (overall), recall less the expected one in each decile of it, at a recall of .75, and
      `drawn_deciles`, the same DRAWS times with clicks drawn from the law itself; with a known
      truth `noise`, the noise share less the true one, and `relevant`, the share of truly relevant
      clicks kept less the share, at SHARES. Of `query_at`, overall: `longest`, its longest list
      over the service's at a recall of .9; `empty`, the share of empty lists at a recall of .5;
      `behind`, how far its recall is behind that of the probe's level at an equal average, at the
      worst k.
    """
    calibrate_clicks, test = (
        _clicks(towers, split, level_temperature) for split in ("calibrate", "test")
    )
    weights = fit_law(initial_weights(), calibrate_clicks)
    shares = fit_share_map(weights, calibrate_clicks)
    strata = towers.queries.strata[towers.rows("test")]
    alpha, beta, noise = (each.numpy() for each in weights.laws(*test.inputs()))
    rows, z = test.rows, (1 + test.cosines) / 2
    above = betainc(beta[rows], alpha[rows], 1 - z)
    background = betainc(test.background_beta[rows], test.background_alpha[rows], 1 - z)
    found: dict[str, Any] = {
        "raw": (1 - noise[rows]) * above + noise[rows] * background,
        "mapped": (1 - noise[rows]) * shares.value(1 - above) + noise[rows] * background,
        "weights": test.weights(),
        "strata": test.strata[rows],
    }
    errors, relevant = [], []
    real = _is_real(towers, "test")
    for share in SHARES:
        ends = betaincinv(alpha, beta, shares.cutoff(share).astype(np.float64))
        tail = betainc(test.background_beta, test.background_alpha, 1 - ends)
        kept = _mean_by_query(z >= ends[rows], rows, len(alpha))
        errors.append(kept - ((1 - noise) * share + noise * tail))
        if real is not None:
            relevant.append(_mean_by_query(z[real] >= ends[rows[real]], rows[real], len(alpha)))
    found["share"] = _means(strata, errors)
    found |= _recalls(towers, level_temperature, (alpha, beta, noise), test, shares)
    if real is not None:
        true_noise = 1 - _mean_by_query(real, rows, len(alpha))
        found["noise"] = _means(strata, [noise - true_noise])
        short = [each - share for each, share in zip(relevant, SHARES, strict=True)]
        found["relevant"] = _means(strata, short)
    return found


def _clicks(towers: Study, split: str, level_temperature: float) -> HeldOutClicks:
    rows, pairs = towers.rows(split), towers.corpus.pairs(split)
    queries, moments = towers.queries.part(rows), Moments.of(towers.items)
    background = background_law(queries.vectors, moments.mean, moments.covariance)
    vectors = towers.queries.vectors[pairs.rows]
    return HeldOutClicks(
        cosines=np.clip(np.einsum("pn,pn->p", vectors, towers.items[pairs.items]), -1, 1),
        rows=np.searchsorted(rows, pairs.rows),
        tau=queries.tau,
        level=_levels(towers, split, level_temperature),
        frequency=towers.corpus.frequency[rows],
        background_alpha=background.alpha.numpy(),
        background_beta=background.beta.numpy(),
        strata=queries.strata,
    )


def _levels(towers: Study, split: str, level_temperature: float) -> np.ndarray:
    queries = towers.queries.part(towers.rows(split))
    sample = sample_of(towers.items, MOST_SAMPLED)
    return levels_of(sample, queries, towers.family, level_temperature)


def _recalls(
    towers: Study,
    level_temperature: float,
    law: tuple[np.ndarray, ...],
    test: HeldOutClicks,
    shares: Any,
) -> dict[str, dict[str, float]]:
    """What `query_at` does: `recall`, `deciles`, and the measures of its lists."""
    policy, probe = (
        kind(level_temperature=level_temperature, family=towers.family)
        for kind in (SampleLevelPolicy, LevelPolicy)
    )
    lists, probe_lists = {}, {}
    for split in ("calibrate", "test"):
        candidates = towers.candidates(split, (level_temperature,))
        levels = _levels(towers, split, level_temperature)
        lists[split] = policy.lists(replace(candidates, sample_levels=levels))
        probe_lists[split] = probe.lists(candidates)
    cutoff = towers.config.cutoff
    knob = recall_map(lists["calibrate"], cutoff.floor, cutoff.limit)
    strata = towers.queries.strata[towers.rows("test")]
    service = calibrate(
        probe_lists["calibrate"],
        towers.queries.strata[towers.rows("calibrate")],
        "level",
        towers.family,
        level_temperature,
        cutoff,
        towers.config.evaluation.average_k,
    )
    longest = (
        _lengths(towers, test, cutoffs).max()
        for cutoffs in (knob.cutoff(0.9), service.cutoff_for("recall", 0.9, strata))
    )
    gains = [
        _recall_at(probe_lists["test"], k) - _recall_at(lists["test"], k)
        for k in towers.config.evaluation.average_k
    ]
    shortest = _lengths(towers, test, knob.cutoff(0.5))
    errors = []
    for recall in SHARES:
        requested = min(max(recall, knob.lowest), knob.highest)
        counts = np.maximum(lists["test"].counts_at(knob.cutoff(recall)), cutoff.floor)
        errors.append(lists["test"].hits(counts) / lists["test"].totals - requested)
    alpha, beta, noise = law
    ends = _ends(towers, test, knob.cutoff(0.75))
    expected = shares.value(betainc(alpha, beta, ends))
    tail = betainc(test.background_beta, test.background_alpha, 1 - ends)
    clicks = (1 - noise) * expected + noise * tail
    z = (1 + test.cosines) / 2
    kept = _mean_by_query(z >= ends[test.rows], test.rows, len(alpha))
    order = np.array_split(np.argsort(expected), 10)
    generator, counts = np.random.default_rng(0), np.bincount(test.rows, minlength=len(alpha))
    drawn = [generator.binomial(counts, np.clip(clicks, 0, 1)) / counts for _ in range(DRAWS)]
    return {
        "recall": _means(strata, errors),
        "deciles": {"overall": _decile_errors(clicks, kept, order)},
        "drawn_deciles": {"overall": [_decile_errors(clicks, each, order) for each in drawn]},
        "longest": {"overall": [float(np.divide(*longest))]},
        "empty": {"overall": [float(np.mean(shortest == 0))]},
        "behind": {"overall": [float(max(0.0, *gains))]},
    }


def _ends(towers: Study, test: HeldOutClicks, cutoffs: Any) -> np.ndarray:
    """[Q] z where lists end, by one cut-off of the level or [Q]."""
    logits = test.tau * (cutoffs + test.level)
    return np.clip(np.exp(logits) if towers.family == "beta" else (1 + logits) / 2, 0, 1)


def _lengths(towers: Study, test: HeldOutClicks, cutoffs: Any) -> np.ndarray:
    """[Q] items at or above where the lists end; candidates would cut the longest.

    As in the query model, which holds the sample, and in the service, a list has at least the best
    of the items held and at most `limit`.
    """
    vectors = towers.queries.vectors[towers.rows("test")]
    cosines = 2 * _ends(towers, test, cutoffs) - 1
    sample = sample_of(towers.items, MOST_SAMPLED)
    lengths = []
    for vector, cosine in zip(vectors, cosines, strict=True):
        cosine = min(cosine, (sample @ vector).max() - ROUNDING)
        lengths.append(int(np.sum(towers.items @ vector >= cosine)))
    return np.minimum(lengths, towers.config.cutoff.limit)


def _recall_at(lists: RankedLists, average: int) -> float:
    return lists.figures(lists.counts_at(lists.cutoff_at(average))).recall


def _decile_errors(
    expected: np.ndarray, kept: np.ndarray, deciles: list[np.ndarray]
) -> list[float]:
    return [float(np.mean(kept[part]) - np.mean(expected[part])) for part in deciles]


def measure_unfamiliar(corpus: Corpus, foreign: Sequence[str]) -> dict[str, dict[str, float]]:
    """Shares of test queries, and of those in reverse, that are flagged; of foreign ones missed.

    At most FOREIGN queries of another data set are drawn; without any, the last is left out.
    """
    split = tokens_of(tf.constant(list(corpus.queries)), corpus.config.features.words())
    words, places = np.unique(split.flat_values.numpy(), return_inverse=True)
    counts = np.bincount(places, corpus.frequency[split.value_rowids().numpy()])
    known = words[counts >= corpus.config.features.min_token_count]

    def shares(texts: Sequence[str]) -> np.ndarray:
        own = tokens_of(tf.constant(list(texts)), corpus.config.features.words())
        inside = np.isin(own.flat_values.numpy(), known).astype(float)
        return _mean_by_query(inside, own.value_rowids().numpy(), len(texts))

    calibrate_rows, test_rows = (
        np.unique(corpus.pairs(name).rows) for name in ("calibrate", "test")
    )
    least = np.quantile(shares(corpus.queries[calibrate_rows]), UNFAMILIAR)

    def flagged(texts: Sequence[str]) -> float:
        found = shares(texts)
        return float(np.mean((found <= 0) | (found < least)))

    test = corpus.queries[test_rows]
    reverse = [" ".join(reversed(text.split())) for text in test]
    result = {"test_flagged": flagged(test), "reordered_flagged": flagged(reverse)}
    if foreign:
        drawn = np.random.default_rng(0).permutation(np.array(foreign, object))[:FOREIGN]
        result["foreign_missed"] = 1 - flagged(drawn)
    return {name: {"overall": [value]} for name, value in result.items()}


def _is_real(towers: Study, split: str) -> np.ndarray | None:
    """[P] whether each clicked pair is truly relevant; None if that is not known."""
    truth = towers.corpus.truth
    if truth is None:
        return None
    pairs, items = towers.corpus.pairs(split), len(towers.items)
    return np.isin(pairs.rows * items + pairs.items, truth.rows * items + truth.items)


def _means(strata: np.ndarray, errors: Sequence[np.ndarray]) -> dict[str, list[float]]:
    """Means of each of the errors [Q], over all queries and over those of each stratum."""
    return {
        group: [float(np.nanmean(each[chosen])) for each in errors]
        for group, chosen in groups_of(strata).items()
    }


def groups_of(strata: np.ndarray) -> dict[str, np.ndarray]:
    """Masks of all, and of each stratum that is not empty."""
    masks = {"overall": np.ones(len(strata), bool)}
    masks |= {name: strata == place for place, name in enumerate(STRATA)}
    return {name: mask for name, mask in masks.items() if mask.any()}


def _mean_by_query(values: np.ndarray, rows: np.ndarray, queries: int) -> np.ndarray:
    """[Q] means; NaN for a query without a pair."""
    counts = np.bincount(rows, minlength=queries)
    sums = np.bincount(rows, values, minlength=queries)
    return np.where(counts, sums / np.maximum(counts, 1), np.nan)


def distance_to_uniform(values: np.ndarray, weights: np.ndarray) -> float:
    """The Kolmogorov-Smirnov distance of weighted values to uniform ones."""
    order = np.argsort(values)
    sorted_values, share = values[order], weights[order] / weights.sum()
    reached = np.cumsum(share)
    before = reached - share
    return float(max(np.abs(reached - sorted_values).max(), np.abs(before - sorted_values).max()))
