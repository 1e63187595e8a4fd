"""Items of the test queries by the share to keep: the level as served, and literal pEBR."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.released import SOURCES as RELEASED_SOURCES
from experiments.released import Released, released
from experiments.study import Study
from pebr_tf.cutoff.policies.cdf import CdfPolicy, PdfCdfPolicy
from pebr_tf.cutoff.policies.plain import ScorePolicy
from pebr_tf.distributions import Beta

SOURCES = (*RELEASED_SOURCES, "pebr_tf.distributions.beta", "experiments.cutoffs_measured")
RECALLS = (0.99, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
# For the histograms. The paper's is at .985, where noise among the clicks makes every list long.
SHOWN = 0.6
POLICIES = {"level": "level", "level_one_map": "one map", "cdf": "literal"}


def measure(towers: Study) -> dict[str, Any]:
    """Items of every test query under every policy and share.

    Returns:
      `counts` by policy, [K, Q] int32 with a row for each of RECALLS; `recall` by policy, [K] macro
      recall; `expected` [K], what the calibration expects; `strata` [Q]; `truncated` by policy,
      [K] share of the lists that end because there are no more candidates; `equal_counts` [Q]
      int32, items by literal pEBR at the level's average where SHOWN is asked for, and
      `equal_dropped`, the share that its law then says is lost; `level_temperature` and `depth`.
    """
    release = released(towers)
    test, strata = release.test, release.test.queries.strata
    counts = {policy: counts_of(towers, release, policy, RECALLS) for policy in POLICIES}
    recall = {
        policy: [release.lists.figures(row).recall for row in rows]
        for policy, rows in counts.items()
    }
    # Literal pEBR where it gives as many items on average as the level, whatever its CDF says.
    paper = towers.config.loss.convention == "paper"
    literal_lists = (CdfPolicy() if paper else PdfCdfPolicy()).lists(test)
    equal = literal_lists.cutoff_at(float(counts["level"][RECALLS.index(SHOWN)].mean()))
    expected = [release.calibration.expected_recall(recall, strata).mean() for recall in RECALLS]
    return {
        "counts": counts,
        "recall": recall,
        "expected": expected,
        "strata": strata,
        "truncated": {
            policy: [test.truncated(row).mean() for row in rows] for policy, rows in counts.items()
        },
        "equal_counts": literal_lists.counts_at(equal).astype(np.int32),
        "equal_dropped": float(np.exp(equal)),
        "level_temperature": release.policy.level_temperature,
        "depth": test.depth,
    }


def counts_of(
    towers: Study, release: Released, policy: str, recalls: Sequence[float]
) -> np.ndarray:
    """[K, Q] int32 items of the test queries under one of POLICIES, for K shares to keep."""
    if policy == "cdf":
        law = Beta.from_tau(release.test.tau, towers.config.loss.convention)
        cosines = ScorePolicy().lists(release.test)
        rows = [cosines.counts_at(law.threshold(recall).numpy()) for recall in recalls]
    else:
        rows = [release.counts(recall, by_stratum=policy == "level") for recall in recalls]
    return np.stack(rows).astype(np.int32)
