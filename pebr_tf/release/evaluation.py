"""The evaluation of a model: the figures, the gates and what they are compared with."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pebr_tf.errors import UserError
from pebr_tf.files import replacing_file
from pebr_tf.metrics.results import (
    BudgetResult,
    CalibrationResult,
    CountHistogram,
    ExampleQuery,
    KnobResult,
    PolicyResult,
)

EVALUATION_FILE, REPORT_FILE = "evaluation.json", "report.html"
_MAX_DIGITS = 9


@dataclass(frozen=True)
class ModelSummary:
    """How the model was trained and cut off."""

    loss: str
    log_q: bool
    family: str
    dimension: int
    steps: int
    policy: str
    level_temperature: float


@dataclass(frozen=True)
class DataSummary:
    """What the model was trained, calibrated and tested on.

    Attributes:
      strata: Stratum -> test queries.
      span: Number of the data's span, or None.
    """

    items: int
    train_clicks: int
    calibrate_queries: int
    test_queries: int
    test_clicks: int
    strata: dict[str, int]
    span: int | None = None


@dataclass(frozen=True)
class IndexResult:
    """The index against exact search, on `queries` queries at the default knob."""

    kind: str
    items: int
    recall_macro: float
    recall_micro: float
    queries: int


@dataclass(frozen=True)
class LatencyResult:
    """Milliseconds per call and queries per second at one batch size."""

    batch: int
    p50_ms: float
    p99_ms: float
    queries_per_second: float


@dataclass(frozen=True)
class GateResult:
    """One gate.

    Attributes:
      name: Key in the configuration.
      bound: The least or largest value that passes.
      queries: Queries that the value was measured on; 0 if it is not a mean over queries.
      noise: How far chance alone takes the value beyond the bound, with a confidence of 95%.
      stratum: The stratum of these queries, or None for all.
    """

    name: str
    title: str
    sign: Literal[">=", "<="]
    bound: float
    received: float
    queries: int = 0
    noise: float = 0.0
    stratum: str | None = None

    @property
    def shortfall(self) -> float:
        """How far the value is beyond the bound; at most 0 if the gate is passed."""
        short = self.bound - self.received
        return short if self.sign == ">=" else -short

    @property
    def state(self) -> Literal["passed", "undecided", "failed"]:
        """Failed only if the shortfall exceeds what chance explains."""
        if self.shortfall <= 0:
            return "passed"
        return "failed" if self.shortfall > self.noise else "undecided"

    @property
    def queries_to_decide(self) -> int:
        """Queries that would make this shortfall significant: noise falls with their root."""
        return math.ceil(self.queries * (self.noise / max(self.shortfall, 1e-9)) ** 2)

    @property
    def measured_on(self) -> str:
        """The queries, such as `24 head queries`; empty if there are none."""
        if not self.queries:
            return ""
        words = [f"{self.queries:,}", self.stratum, "query" if self.queries == 1 else "queries"]
        return " ".join(filter(None, words))

    @property
    def bound_text(self) -> str:
        """The bound with two decimals, or as many as it has, at most four."""
        return max(f"{self.bound:.2f}", f"{self.bound:.4g}", key=len)

    @property
    def received_text(self) -> str:
        """The value with three digits, or as many as distinguish it from the bound."""
        value = self.received
        digits = 3 if value == 0 else max(0, 2 - math.floor(math.log10(abs(value))))
        while (
            digits < _MAX_DIGITS
            and value != self.bound
            and float(f"{value:.{digits}f}") == float(self.bound_text)
        ):
            digits += 1
        return f"{value:,.{digits}f}"

    @property
    def required(self) -> str:
        """The requirement, such as `>= 0.98`."""
        return f"{self.sign} {self.bound_text}"

    @property
    def finding(self) -> str:
        """The value, the queries and the bound in words; for a gate that is not passed."""
        side = "below the required" if self.sign == ">=" else "above the allowed"
        queries = f" for {self.measured_on}" if self.queries else ""
        doubt = ", which so few cannot decide" if self.state == "undecided" else ""
        return (
            f"{self.title} is {self.received_text}{queries}, {side} {self.bound_text} "
            f"({self.name}){doubt}"
        )


@dataclass(frozen=True)
class BaselineResult:
    """The last blessed model on the same clicks.

    Attributes:
      model: URI of its artifact.
      level_temperature: Tuned for it.
      policies: top_k and the default policy.
    """

    model: str
    steps: int
    level_temperature: float
    policies: list[PolicyResult]


@dataclass(frozen=True)
class PreviousRelease:
    """Figures of the release before, measured on its own clicks."""

    version: int
    policies: list[PolicyResult]
    calibration: CalibrationResult
    default_knob: KnobResult
    index: IndexResult
    latency: list[LatencyResult]


@dataclass(frozen=True)
class ModelEvaluation:
    """The content of evaluation.json.

    Attributes:
      average_k: Averages that policies are compared at.
      policies: Every policy on the test clicks; the default, top_k and the oracle among them.
      unseen: The same without pairs of the training split; empty if nothing is left.
      counts: Items per query at the default knob.
      examples: Queries from the fewest items to the most.
      latency: By batch size, the smallest first.
    """

    model: ModelSummary
    data: DataSummary
    average_k: list[int]
    policies: list[PolicyResult]
    unseen: list[PolicyResult]
    calibration: CalibrationResult
    default_knob: KnobResult
    budget: BudgetResult
    counts: CountHistogram
    examples: list[ExampleQuery]
    index: IndexResult
    latency: list[LatencyResult]
    baseline: BaselineResult | None = None
    previous: PreviousRelease | None = None
    gates: list[GateResult] = field(default_factory=list)

    @property
    def blessed(self) -> bool:
        return all(gate.state != "failed" for gate in self.gates)

    @property
    def middle_k(self) -> int:
        """The average in the middle of those compared at; the upper one of two."""
        return self.average_k[len(self.average_k) // 2]

    @classmethod
    def load(cls, folder: Path) -> ModelEvaluation:
        path = Path(folder) / EVALUATION_FILE
        try:
            return cls.from_json(path.read_bytes())
        except OSError as error:
            raise UserError(f"{path} must be readable. Received: {error.strerror}.") from error

    @classmethod
    def from_json(cls, text: bytes) -> ModelEvaluation:
        # Imported here: most users of this module only write.
        from pydantic import TypeAdapter, ValidationError

        try:
            return TypeAdapter(cls).validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            reason = f"{where}: {first['msg']}" if where else first["msg"]
            raise UserError(
                f"{EVALUATION_FILE} must be an evaluation of this version. Received: {reason}."
            ) from error

    def save(self, folder: Path) -> None:
        """Writes evaluation.json into a folder, whole or not at all."""
        content = {**dataclasses.asdict(self), "blessed": self.blessed}
        text = json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False)
        with replacing_file(Path(folder) / EVALUATION_FILE) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")

    def as_previous(self, version: int) -> PreviousRelease:
        """The figures that the next evaluation compares with."""
        return PreviousRelease(
            version, self.policies, self.calibration, self.default_knob, self.index, self.latency
        )


def named_policy(policies: list[PolicyResult], name: str) -> PolicyResult:
    return next(policy for policy in policies if policy.name == name)


def default_result(policies: list[PolicyResult]) -> PolicyResult:
    return next(policy for policy in policies if policy.default)
