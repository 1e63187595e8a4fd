"""What the comparison must reach, each bar with what was required and what was received."""

from collections.abc import Mapping
from typing import Any

from experiments.seeds import FiguresByPolicy, mean, plain
from experiments.settings import GOODBOOKS, SYNTHETIC

_DEFAULT = "beta"
# Other ways to end a list that can be served.
RIVALS = ("score", "gap", "cdf", "nucleus", "adapter")
_RATIO = 1.3
_CLOSED = {SYNTHETIC: 0.4, GOODBOOKS: 0.3}


def closed(found: FiguresByPolicy, policy: str, k: int) -> float:
    """The share of the way from top k's recall to the oracle's that a policy has made."""
    fixed, ours, best = (mean(found, name, k, "recall") for name in ("top_k", policy, "oracle"))
    return (ours - fixed) / max(best - fixed, 1e-9)


def strongest_point(figures: Mapping[str, Any], place: int) -> tuple[float, float | None]:
    """The level temperature with the largest precision whose recall is not below top k's.

    Args:
      figures: Of a data set, see `comparison.figures_of`.
      place: Which of its averages.

    Returns:
      The precision over top k's, and the level temperature; 0 and None if there is none.
    """
    k, dial = figures["averages"][place], figures["dial"]
    fixed = figures["kinds"][_DEFAULT]
    base, least = (mean(fixed, "top_k", k, measure) for measure in ("precision", "recall"))
    points = [
        (precision[place] / base, level_temperature)
        for level_temperature, precision, recall in zip(
            dial["level_temperatures"], dial["precision"], dial["recall"], strict=True
        )
        if recall[place] >= least
    ]
    return max(points, default=(0.0, None))


def beats(figures: Mapping[str, Any], ours: str, rival: str, k: int) -> str | None:
    """How a policy of this project beats a baseline at an average; None if it does not.

    By a higher recall at the equal average; or, at the rival's own recall, by a higher precision
    with fewer items.
    """
    found = figures["kinds"][_DEFAULT]
    if mean(found, ours, k, "recall") > mean(found, rival, k, "recall"):
        return "recall"
    own = figures["own_recall"][rival][str(k)][ours]
    theirs = {name: mean(found, rival, k, name) for name in ("precision", "average")}
    if own and own["precision"] > theirs["precision"] and own["average"] < theirs["average"]:
        return "precision"
    return None


def bars_of(dataset: str, figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each bar of a data set: `dataset`, `bar`, `k`, `required`, `received` and `passed`."""
    found = figures["kinds"][_DEFAULT]
    bars: list[dict[str, Any]] = []

    def add(bar: str, k: int | None, required: str, received: str, passed: bool) -> None:
        entry = {"bar": bar, "k": k, "required": required, "received": received}
        bars.append({"dataset": dataset, **entry, "passed": bool(passed)})

    for place, k in enumerate(figures["averages"]):
        for measure in ("precision", "recall"):
            ours, fixed = (mean(found, name, k, measure) for name in ("level", "top_k"))
            add(f"{measure} of the level", k, f">= {plain(fixed)}", plain(ours), ours >= fixed)
        ratio, level_temperature = strongest_point(figures, place)
        text = f"{ratio:.2f}" + (
            "" if level_temperature is None else f" at T = {level_temperature:g}"
        )
        required = f">= {_RATIO} of top k's"
        add("precision on the T dial, recall not lower", k, required, text, ratio >= _RATIO)
        for rival in RIVALS:
            how = beats(figures, "level", rival, k)
            why = {"recall": "higher recall", "precision": "more precise at its recall"}
            add(f"level against {rival}", k, "wins", why.get(how or "", "loses"), how is not None)
        for policy in ("level", "depth_law"):
            share = closed(found, policy, k)
            name = f"recall gap to the oracle closed, {policy}"
            required = f">= {_CLOSED[dataset]:.0%}"
            add(name, k, required, f"{share:.1%}", share >= _CLOSED[dataset])
        if "real" in figures["protocols"]:
            share = closed(figures["protocols"]["real"], "level", k)
            name = "the same without noise among the clicks, level"
            add(name, k, f">= {_CLOSED[dataset]:.0%}", f"{share:.1%}", share >= _CLOSED[dataset])
    return bars
