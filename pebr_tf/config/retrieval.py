"""Settings of what comes out: the cut-off, the index, and the gates before a release."""

from typing import Literal, get_args

from pebr_tf.config.section import Section
from pebr_tf.config.setting import AUTO, setting

MAX_LIMIT = 1_000_000
# Most items that the query model holds by default.
MOST_SAMPLED = 100_000
Knob = Literal["recall", "share", "budget", "top_k", "score"]
KNOBS: tuple[str, ...] = get_args(Knob)


class Cutoff(Section):
    """Where lists end: the policy, its level, and the default knob."""

    policy: Literal["level", "share", "cdf", "cdf_pdf", "top_k", "score", "gap", "nucleus"] = (
        setting("level", "What ends a list")
    )
    level_temperature: float | None = setting(
        None, "Level temperature T; null: tuned on held-out clicks", "[0, 10]"
    )
    level_source: Literal["probe", "sample"] = setting(
        "probe", "Level from a small search, or from the items that the query model holds"
    )
    level_sample: int | None = setting(
        None,
        f"Items that the query model holds; null: all, at most {MOST_SAMPLED:,}",
        "[1, 1_000_000]",
    )
    probe_size: int = setting(
        100, "Items of the small search (level_source: probe)", "[1, 100_000]"
    )
    background_sample: int = setting(
        2_000, "Random items that represent the rest of the catalogue", "[1, 1_000_000]"
    )
    default_knob: Knob = setting("recall", "Knob of requests that set none")
    default_value: float | None = setting(
        None,
        "Recall, share, items or least cosine; null: the recall that the largest average_k reaches",
        f"[-1, {MAX_LIMIT}]",
    )
    unfamiliar_items: int | None = setting(
        None,
        "Items for a query that the model does not know; null: the floor",
        f"[1, {MAX_LIMIT}]",
    )
    floor: int = setting(1, "Fewest items per query", f"[0, {MAX_LIMIT}]")
    limit: int = setting(10_000, "Most items per query", f"[1, {MAX_LIMIT}]")
    min_calibration_queries: int = setting(
        200,
        "Calibrate queries below which the test queries calibrate too, by cross-fitting",
        "[10, 1_000_000]",
    )

    def check(self) -> None:
        self.require(self.floor <= self.limit, "floor", f"be at most limit ({self.limit})")
        knob, value = self.default_knob, self.default_value
        if value is None and knob == "recall":
            return
        number = float("nan") if value is None else value
        requirement = knob_requirement(knob, number, self.floor, self.limit)
        self.require(
            requirement is None, "default_value", f"be {requirement} when default_knob is {knob}"
        )


def knob_requirement(knob: str, value: float, floor: int, limit: int) -> str | None:
    """The range that the value of a knob violates, or None if the value is valid.

    `floor` and `limit` are the fewest and the most items of a query.
    """
    least = max(floor, 1)
    in_range = least <= value <= limit
    valid, requirement = {
        "recall": (0 < value < 1, "a number above 0 and below 1"),
        "share": (0 < value < 1, "a number above 0 and below 1"),
        "budget": (in_range, f"a number from {least} to {limit}"),
        "top_k": (
            in_range and value.is_integer(),
            f"a whole number from {least} to {limit}",
        ),
        "score": (-1 <= value <= 1, "a number from -1 to 1"),
    }[knob]
    return None if valid else requirement


class Index(Section):
    """The search index: how exact, how large, how it checks itself."""

    recall_target: float = setting(
        0.99, "Share of the exact answer that it is tuned to find", "(0, 1)"
    )
    exact_below: int = setting(
        20_000, "Smaller catalogues are searched exactly", "[0, 100_000_000]"
    )
    leaves: int | None = setting(None, "Partitions; null: chosen by the size", "[1, 1_000_000]")
    max_leaves_searched: int | None = setting(
        None, "Partitions that a query may visit; null: all", "[1, 1_000_000]"
    )
    dimensions_per_block: int = setting(
        1, "Dimensions per quantisation block; 1 is best at high recall", "[1, 16]"
    )
    check_queries: int = setting(
        200, "Queries stored with their exact results and repeated on load", "[1, 100_000]"
    )
    check_recall: float = setting(
        0.97, "Lowest recall on these queries; an index below it is not loaded", "[0, 1)"
    )

    def check(self) -> None:
        self.require(
            self.check_recall <= self.recall_target,
            "check_recall",
            f"be at most recall_target ({self.recall_target})",
        )


class Gates(Section):
    """What a model must not miss significantly; lifts compare with top_k at equal average k."""

    min_precision_lift: float = setting(0.0, "Relative gain in precision over top_k", "[-1, 10]")
    min_recall_lift: float = setting(0.0, "Relative gain in recall over top_k", "[-1, 10]")
    min_query_gain: float | None = setting(
        0.01, "Gain in recall over another query's list, above noise; null: no gate", "[-1, 1]"
    )
    min_baseline_recall_lift: float | None = setting(
        -0.05, "Gain in recall over the last blessed model; null: no gate", "[-1, 10]"
    )
    max_calibration_error: float = setting(0.03, "Error of the recall knob, overall", "[0, 1]")
    max_stratum_calibration_error: float = setting(
        0.05, "Error of the recall knob, worst stratum", "[0, 1]"
    )
    min_index_recall: float = setting(
        0.98, "Share of the exact answer that the index finds", "[0, 1]"
    )
    max_empty_rate: float = setting(0.01, "Share of queries without a result", "[0, 1]")
    max_p99_milliseconds: float | None = setting(
        None, "99th percentile of the search time; null: no gate", "(0, 600_000]"
    )


class Evaluation(Section):
    """What a trained model is measured at."""

    average_k: tuple[int, ...] = setting(
        AUTO,
        "Average items to compare policies at",
        f"[1, {MAX_LIMIT}]",
        filled=True,
        increasing=True,
        automatic=True,
    )
    max_queries: int | None = setting(None, "Test queries at most; null: all", "[1, 100_000_000]")
    gates: Gates = Gates()
