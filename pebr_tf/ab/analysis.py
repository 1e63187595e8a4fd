"""The read-out of an experiment: each arm against control on each metric, and warnings."""

import dataclasses
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import orjson

from pebr_tf.ab import cuped, estimate, sample_ratio
from pebr_tf.ab.estimate import ArmComparison, Estimate
from pebr_tf.ab.metric import Metric
from pebr_tf.ab.sample_ratio import SampleRatio
from pebr_tf.ab.users import Users
from pebr_tf.errors import UserError

CONTROL = "control"
# With fewer, sums are not close enough to normal for the intervals to be valid.
MIN_USERS = 100
MIN_CONVERSIONS = 10
# The far tails of a sum are not normal, however many users there are.
MAX_CONFIDENCE = 0.9999


@dataclass(frozen=True)
class ArmReadout:
    """One metric in one arm; control has no comparison.

    `p_value_holm` is the p-value of the comparison, corrected for the number of arms.
    """

    name: str
    value: float
    standard_error: float
    comparison: ArmComparison | None
    p_value_holm: float


@dataclass(frozen=True)
class MetricReadout:
    """One metric in all arms.

    Attributes:
      arms: [A] as the log has them, control first.
      cuped: [A] the same adjusted for the past; None without past columns.
      variance_reduction: Share by which the past lowers the variance of each difference, [A - 1].
    """

    name: str
    kind: str
    arms: tuple[ArmReadout, ...]
    cuped: tuple[ArmReadout, ...] | None
    past: tuple[str, ...]
    variance_reduction: tuple[float, ...]


@dataclass(frozen=True)
class Analysis:
    """The read-out of an experiment, with arms, users and rows [A], control first.

    Users in more than one arm (`crossing`) are left out. The warnings are sentences on what weakens
    the figures; a sample-ratio mismatch comes first.
    """

    arms: tuple[str, ...]
    users: tuple[int, ...]
    rows: tuple[int, ...]
    crossing: int
    confidence: float
    sample_ratio: SampleRatio
    metrics: tuple[MetricReadout, ...]
    warnings: tuple[str, ...]

    def to_json(self) -> str:
        """All figures; null where one cannot be computed."""
        # orjson writes null for NaN, which JSON does not have.
        return json.dumps(json.loads(orjson.dumps(self)), indent=1) + "\n"


def analyse(
    users: Users,
    metrics: Sequence[Metric],
    control: str | None = None,
    expected: str | None = None,
    confidence: float = 0.95,
) -> Analysis:
    """Compares every arm with `control`, else the one called control, else the first by name.

    `users` have the totals and the past that the metrics need. `expected` are the planned shares of
    the users, such as "control=1,treatment=1"; else all are equal.
    """
    if not 0 < confidence <= MAX_CONFIDENCE:
        raise UserError(
            f"--confidence must be above 0 and at most {MAX_CONFIDENCE}. Received: {confidence:g}."
        )
    names = _control_first(users.names, control)
    arms = {name: np.flatnonzero(users.arms == users.names.index(name)) for name in names}
    counts = tuple(map(len, arms.values()))
    analysis = Analysis(
        arms=names,
        users=counts,
        rows=tuple(int(users.rows[members].sum()) for members in arms.values()),
        crossing=users.crossing,
        confidence=confidence,
        sample_ratio=sample_ratio.check(np.array(counts), sample_ratio.weights_of(expected, names)),
        metrics=tuple(_readout(users, metric, arms, confidence) for metric in metrics),
        warnings=(),
    )
    return dataclasses.replace(analysis, warnings=tuple(_warnings(analysis)))


def _control_first(names: tuple[str, ...], control: str | None) -> tuple[str, ...]:
    if control is None:
        control = CONTROL if CONTROL in names else names[0]
    if control not in names:
        raise UserError(
            f"--control must be an arm of the file: {', '.join(names)}. Received: {control}."
        )
    return (control, *(name for name in names if name != control))


def _readout(
    users: Users, metric: Metric, arms: Mapping[str, np.ndarray], confidence: float
) -> MetricReadout:
    """`arms` maps each arm to the places [n] of its users, control first."""
    numerator, denominator = metric.of_users(users.totals)
    _require_denominators(users, metric, numerator, denominator)
    plain: list[Estimate] = []
    deviations: list[np.ndarray] = []
    for name, chosen in arms.items():
        if not denominator[chosen].any():
            raise UserError(f"{name} must have {metric.denominator}. Received: 0 in all.")
        value, deviation = estimate.linearised(numerator[chosen], denominator[chosen])
        deviations.append(deviation)
        if metric.kind == "binary":
            plain.append(estimate.share(value, len(chosen)))
        else:
            plain.append(Estimate(value, estimate.mean_variance(deviation)))
    better = None
    reduction: tuple[float, ...] = ()
    if metric.past:
        past = _past(users, metric, list(arms.values()))
        estimates = cuped.adjusted([each.value for each in plain], deviations, past)
        better = _arms(arms, estimates, confidence)
        reduction = tuple(
            _reduction(plain[0].variance + arm.variance, estimates[0].variance + other.variance)
            for arm, other in zip(plain[1:], estimates[1:], strict=True)
        )
    return MetricReadout(
        name=metric.name,
        kind=metric.kind,
        arms=_arms(arms, plain, confidence),
        cuped=better,
        past=metric.past,
        variance_reduction=reduction,
    )


def _arms(
    names: Iterable[str], estimates: Sequence[Estimate], confidence: float
) -> tuple[ArmReadout, ...]:
    control, *others = estimates
    comparisons = [estimate.compare(control, other, confidence) for other in others]
    corrected = estimate.holm(np.array([each.p_value for each in comparisons]))
    return tuple(
        ArmReadout(name, each.value, math.sqrt(each.variance), comparison, float(p_value))
        for name, each, comparison, p_value in zip(
            names, estimates, [None, *comparisons], [math.nan, *corrected], strict=True
        )
    )


def _past(users: Users, metric: Metric, members: Sequence[np.ndarray]) -> list[np.ndarray]:
    together = np.stack([users.past[name] for name in metric.past], axis=1)
    past = [together[chosen] for chosen in members]
    for name, spread in zip(metric.past, cuped.spread(past), strict=True):
        if spread == 0:
            raise UserError(
                f"{name} must differ between the users of an arm to predict anything. "
                f"Received: {users.past[name][members[0][0]]:g} for all."
            )
    return past


def _require_denominators(
    users: Users, metric: Metric, numerator: np.ndarray, denominator: np.ndarray
) -> None:
    bad = (numerator > 0) & (denominator == 0)
    if bad.any():
        index = int(np.argmax(bad))
        raise UserError(
            f"a user with {metric.numerator} must have {metric.denominator}. Received: "
            f"{numerator[index]:g} and 0 of user {users.ids[index]}."
        )


def _reduction(before: float, after: float) -> float:
    return 1 - after / before if before > 0 else math.nan


def _warnings(analysis: Analysis) -> Iterator[str]:
    counts, crossing = np.array(analysis.users), analysis.crossing
    ratio = analysis.sample_ratio
    if ratio.mismatch:
        yield (
            f"Sample-ratio mismatch (p = {ratio.p_value:.1g}): the arms do not have the users that "
            "they should. Find the cause before you use any figure below."
        )
    if crossing:
        seen = crossing + counts.sum()
        yield f"{crossing:,} of {seen:,} users were seen in more than one arm and are left out."
    if counts.min() < MIN_USERS:
        yield (
            f"{analysis.arms[counts.argmin()]} has {counts.min()} users: with fewer than "
            f"{MIN_USERS} the intervals are too narrow."
        )
    for readout in analysis.metrics:
        if readout.kind != "binary":
            continue
        conversions = np.array([arm.value for arm in readout.arms]) * counts
        if min(conversions.min(), (counts - conversions).min()) < MIN_CONVERSIONS - 0.5:
            yield (
                f"{readout.name}: fewer than {MIN_CONVERSIONS} users of an arm have (or lack) it; "
                "the figures are rough."
            )
