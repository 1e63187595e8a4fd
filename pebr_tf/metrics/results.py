"""Measured figures as plain numbers: the parts of an evaluation that depend on the cut-off.

A *group* is `overall` or the name of a stratum. A stratum without queries is absent.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pebr_tf.metrics.ranked import Figures
from pebr_tf.metrics.strata import STRATA

GROUPS = ("overall", *STRATA)


@dataclass(frozen=True)
class ListSummary:
    """Precision, recall and list lengths of a set of queries.

    Attributes:
      precision: Macro average; an empty list counts as 0.
      recall: Macro average.
      micro_precision: Over all retrieved items.
      micro_recall: Over all relevant items.
      empty: Share of queries without an item.
      truncated: Share of queries whose list was cut by the limit.
      p10: 10th percentile of the items per query; `p50`, `p90` and `p99` likewise.
    """

    precision: float
    recall: float
    micro_precision: float
    micro_recall: float
    average: float
    empty: float
    truncated: float
    p10: int
    p50: int
    p90: int
    p99: int

    @classmethod
    def of(cls, figures: Figures, truncated: np.ndarray) -> ListSummary:
        """Summarizes figures of Q queries. Without a query, all numbers are 0.

        `truncated` [Q] tells whether a list was cut by the limit.
        """
        # "lower" returns a number of items that some query has, not one between two queries.
        percentiles = {
            f"p{percent}": int(np.percentile(figures.counts, percent, method="lower"))
            if len(figures.counts)
            else 0
            for percent in (10, 50, 90, 99)
        }
        measures = ("precision", "recall", "micro_precision", "micro_recall", "average", "empty")
        return cls(
            **{name: getattr(figures, name) for name in measures},
            truncated=float(truncated.mean()) if len(figures.counts) else 0.0,
            **percentiles,
        )


@dataclass(frozen=True)
class Curve:
    """Macro precision and recall at rising averages, three lists of equal length."""

    average: list[float]
    precision: list[float]
    recall: list[float]


@dataclass(frozen=True)
class PolicyResult:
    """One policy at equal averages.

    Attributes:
      default: Whether a release serves with it.
      at: Average number of items -> group -> summary.
      curve: From few items to many, or None if it was not measured.
    """

    name: str
    title: str
    default: bool
    at: dict[int, dict[str, ListSummary]]
    curve: Curve | None = None


@dataclass(frozen=True)
class CalibrationResult:
    """The recall knob on test queries.

    Attributes:
      expected: Group -> the recall that calibration predicts for each value: the requested one,
        within the range that the calibrate clicks support.
      measured: Group -> recall on the held-out clicks.
      error: Group -> mean absolute difference between expected and measured.
      queries: Group -> calibrate queries that the expectation was measured on.
      folds: Folds of the maps that measured each query; 0 if other queries calibrated the knob.
    """

    requested: list[float]
    expected: dict[str, list[float]]
    measured: dict[str, list[float]]
    average: list[float]
    error: dict[str, float]
    queries: dict[str, int]
    folds: int = 0


@dataclass(frozen=True)
class BudgetResult:
    """The budget knob on test queries: requested and measured items per query."""

    requested: list[int]
    measured: list[float]


@dataclass(frozen=True)
class KnobResult:
    """The default knob on test queries, beside lists of equal length.

    Attributes:
      interval: 95% interval of the recall of all queries.
      top_k_items: Items per query with which top k reaches the same recall, or None.
      top_k_recall: Recall of top k with the same number of items.
    """

    knob: str
    value: float
    groups: dict[str, ListSummary]
    interval: tuple[float, float]
    top_k_items: int | None
    top_k_recall: float


@dataclass(frozen=True)
class CountHistogram:
    """Queries by their number of items.

    Attributes:
      edges: [E + 1] rising; bin i holds edges[i] <= count < edges[i + 1].
      queries: [E] queries in each bin.
    """

    edges: list[int]
    queries: list[int]


@dataclass(frozen=True)
class ExampleQuery:
    """One test query at the default knob.

    Attributes:
      relevant: Relevant items in the catalogue.
      threshold: Cosine of the last item of its list, in [-1, 1]; 1 if the list is empty.
      clicks: Cosines of the relevant items that are among the candidates, at most 100, best first.
    """

    query: str
    stratum: str
    count: int
    relevant: int
    hits: int
    threshold: float
    clicks: list[float] = field(default_factory=list)
