"""Anomalies of tfdv as sentences: column, split and reason."""

from collections.abc import Iterator
from dataclasses import dataclass

from tensorflow_metadata.proto.v0 import anomalies_pb2

_Info = anomalies_pb2.AnomalyInfo
_DISTANCES = {
    _Info.COMPARATOR_L_INFTY_HIGH: "largest difference of a value's share",
    _Info.COMPARATOR_JENSEN_SHANNON_DIVERGENCE_HIGH: "Jensen-Shannon divergence",
}
# tfdv has this value in its text only.
_MOST = "The feature value with maximum difference is: "


@dataclass(frozen=True)
class Finding:
    """One anomaly.

    Attributes:
      column: The column of the click log; empty for the split as a whole.
      stops: Whether it stops the run; otherwise it is a warning.
    """

    split: str
    column: str
    what: str
    stops: bool

    def __str__(self) -> str:
        column = f"column {self.column} in " if self.column else ""
        return f"{column}split {self.split}: {self.what}"


def findings(
    split: str, anomalies: anomalies_pb2.Anomalies, distances_stop: bool
) -> Iterator[Finding]:
    """Every reason of every anomaly, sorted by column; drift and skew may be warnings."""
    whole = anomalies.dataset_anomaly_info
    for reason in whole.reason:
        yield Finding(split, "", _sentence(reason.description), whole.severity == _Info.ERROR)
    measured = {tuple(info.path.step): info for info in anomalies.drift_skew_info}
    for key in sorted(anomalies.anomaly_info):
        info = anomalies.anomaly_info[key]
        path = tuple(info.path.step)
        for reason in info.reason:
            stops = info.severity == _Info.ERROR
            if reason.type in _DISTANCES:
                what, stops = _distance(reason, measured[path]), stops and distances_stop
            else:
                what = _sentence(reason.description)
            yield Finding(split, ".".join(path), what, stops)


def _distance(
    reason: anomalies_pb2.AnomalyInfo.Reason, measured: anomalies_pb2.DriftSkewInfo
) -> str:
    # A split is compared with the last accepted run or with train, never with both.
    drifted = bool(measured.drift_measurements)
    measurement = (measured.drift_measurements if drifted else measured.skew_measurements)[0]
    _, named, most = reason.description.partition(_MOST)
    details = [
        f"{_DISTANCES[reason.type]} {'since the last accepted run' if drifted else 'to train'}",
        *([f"most at {most.strip()!r}"] if named else []),
    ]
    return (
        f"{'drift' if drifted else 'skew'} of {measurement.value:.3g} above "
        f"{measurement.threshold:g} ({', '.join(details)})"
    )


def _sentence(description: str) -> str:
    text = description.strip().rstrip(".")
    return text[:1].lower() + text[1:]
