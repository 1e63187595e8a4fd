"""Metrics of a user, and the columns that they are made of."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pebr_tf.errors import UserError

MetricKind = Literal["ratio", "mean", "binary"]
# The default metrics: rates over searches, and shares of users with a value above 0.
SEARCHES = "searches"
RATE_COLUMNS = ("clicks", "orders", "conversions")
BINARY_COLUMNS = ("orders", "conversions", "converted")
DEFAULT_COLUMNS = tuple(dict.fromkeys((SEARCHES, *RATE_COLUMNS, *BINARY_COLUMNS)))


@dataclass(frozen=True)
class Metric:
    """One metric of an experiment.

    Attributes:
      kind: "ratio": the sum of one column over the sum of another. "mean": the sum of a column per
        user. "binary": the share of users for whom a column is above 0 in any row.
      past: Columns from before the experiment that may predict the metric.
    """

    kind: MetricKind
    numerator: str
    denominator: str | None = None
    past: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        if self.kind == "ratio":
            return f"{self.numerator}/{self.denominator}"
        return (
            f"{self.numerator} per user" if self.kind == "mean" else f"users with {self.numerator}"
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are summed over the rows of a user."""
        return tuple(name for name in (self.numerator, self.denominator) if name is not None)

    def of_users(self, totals: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """[U] float64 numerators and denominators, from the users' totals of each column."""
        numerator = totals[self.numerator]
        if self.denominator is not None:
            return numerator, totals[self.denominator]
        if self.kind == "binary":
            numerator = (numerator > 0).astype(np.float64)
        return numerator, np.ones_like(numerator)


def named_metrics(
    ratios: Sequence[str], means: Sequence[str], binaries: Sequence[str]
) -> tuple[Metric, ...]:
    """The requested metrics, each once, ordered by kind."""
    metrics = [_ratio(text) for text in ratios]
    metrics += [Metric("mean", name) for name in means]
    metrics += [Metric("binary", name) for name in binaries]
    if not all(metric.numerator for metric in metrics):
        raise UserError("--mean and --binary must name a column. Received: nothing.")
    return tuple(dict.fromkeys(metrics))


def default_metrics(present: Collection[str]) -> tuple[Metric, ...]:
    """Clicks and orders per search, and the share of users who ordered, of `present` columns."""
    metrics = []
    if SEARCHES in present:
        metrics += [Metric("ratio", name, SEARCHES) for name in RATE_COLUMNS if name in present]
    metrics += [Metric("binary", name) for name in BINARY_COLUMNS if name in present]
    if not metrics:
        raise UserError(
            "--ratio, --mean or --binary must name a metric where the file has no columns "
            f"{SEARCHES} and clicks, or orders, conversions or converted. Received: "
            f"{', '.join(name for name in DEFAULT_COLUMNS if name in present) or 'none'}."
        )
    return tuple(metrics)


def with_past(metrics: Sequence[Metric], before: Sequence[str]) -> tuple[Metric, ...]:
    """The metrics with the past of their columns, as texts COLUMN=PAST tell it."""
    used = list(dict.fromkeys(name for metric in metrics for name in metric.columns))
    pairs = []
    for text in before:
        column, equals, past = text.partition("=")
        if not (column and equals and past):
            raise UserError(
                f"--before must be COLUMN=PAST, as clicks=clicks_before. Received: {text}."
            )
        if column not in used:
            raise UserError(
                f"--before must name a column of a metric: {', '.join(used)}. Received: {column}."
            )
        if past in used:
            # A column that the experiment may change would hide its effect.
            raise UserError(
                "--before must name a past, which was there before the test, and not a column of "
                f"a metric. Received: {text}."
            )
        pairs.append((column, past))
    return tuple(
        dataclasses.replace(
            metric,
            past=tuple(dict.fromkeys(past for column, past in pairs if column in metric.columns)),
        )
        for metric in metrics
    )


def _ratio(text: str) -> Metric:
    parts = text.split("/")
    if len(parts) != 2 or not all(parts):
        raise UserError(
            f"--ratio must be NUMERATOR/DENOMINATOR, as clicks/searches. Received: {text}."
        )
    return Metric("ratio", parts[0], parts[1])
