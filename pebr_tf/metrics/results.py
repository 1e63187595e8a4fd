"""Measured figures as plain numbers: the parts of an evaluation that depend on the cut-off.

A *group* is `overall` or the name of a stratum. A stratum without queries is absent.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pebr_tf.metrics.ranked import ListSummary
from pebr_tf.metrics.strata import STRATA

GROUPS = ("overall", *STRATA)


@dataclass(frozen=True)
class Curve:
    """Macro precision and recall at rising averages, three lists of equal length."""

    average: list[float]
    precision: list[float]
    recall: list[float]


@dataclass(frozen=True)
class PolicyResult:
    """One policy at equal averages.

    A release serves with the default. `at` maps the average number of items to group to summary;
    the curve goes from few items to many, if it was measured.
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
    """Queries [E] by their number of items: bin i holds edges[i] <= count < edges[i + 1]."""

    edges: list[int]
    queries: list[int]


@dataclass(frozen=True)
class ExampleQuery:
    """One test query at the default knob.

    The threshold is the cosine of the last item of its list, in [-1, 1], or 1 if that is empty;
    `clicks` are the cosines of relevant candidates, at most 100, best first.
    """

    query: str
    stratum: str
    count: int
    relevant: int
    hits: int
    threshold: float
    clicks: list[float] = field(default_factory=list)
