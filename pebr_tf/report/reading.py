"""What an evaluation says, or None where it says nothing.

A stratum without queries, an evaluation of an older release or a measure that was not taken leave
gaps; a report shows them and does not fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pebr_tf.metrics import STRATA
from pebr_tf.report.formats import finite

ORACLE = "oracle"
GROUPS = ("overall", *STRATA)


def lookup(tree: Any, *path: str) -> Any:
    """The value at the end of `path` through mappings; None if a step is missing."""
    for name in path:
        if not isinstance(tree, Mapping):
            return None
        tree = tree.get(name)
    return tree


def number(tree: Any, *path: str) -> float | None:
    """The finite number at the end of `path`, or None."""
    return finite(lookup(tree, *path))


def entries(tree: Any, *path: str) -> list[Any]:
    """The list at the end of `path`; empty if it is missing."""
    found = lookup(tree, *path)
    return list(found) if isinstance(found, list | tuple) else []


def named(policies: Iterable[Any], name: str) -> dict[str, Any] | None:
    """The policy of that name."""
    return next((policy for policy in policies if lookup(policy, "name") == name), None)


def default_policy(evaluation: Mapping[str, Any]) -> dict[str, Any] | None:
    """The policy that a release would serve with."""
    policies = entries(evaluation, "policies")
    return next((policy for policy in policies if lookup(policy, "default")), None)


def middle_k(evaluation: Mapping[str, Any]) -> int | None:
    """The average number of items in the middle of those compared at; the upper of two."""
    levels = entries(evaluation, "average_k")
    return levels[len(levels) // 2] if levels else None


def best(policies: Iterable[Any], k: int, group: str, measure: str) -> float | None:
    """The highest value that a policy other than the oracle reaches, to the shown three digits."""
    values = [
        value
        for policy in policies
        if lookup(policy, "name") != ORACLE
        and (value := number(policy, "at", str(k), group, measure)) is not None
    ]
    return round(max(values), 3) if values else None


def place(values: list[Any], at: int) -> Any:
    """The entry at a place, None past the end."""
    return values[at] if at < len(values) else None
