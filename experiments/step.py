"""Steps of an experiment: what is computed once, kept, and found again by the next run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from experiments.store import Store

__all__ = ["Progress", "Step", "Store", "run_steps"]


@dataclass(frozen=True)
class Step:
    """A computation with a result that is worth keeping.

    Attributes:
      title: What a person reads: "synthetic, beta_nce, seed 0: towers".
      key: JSON; names the result together with the bytes of `sources` and with `needs`.
      sources: Modules and packages, dotted, whose files decide the result.
      compute: Called with the results of `needs`, in order; returns nested mappings of plain JSON
        values and NumPy arrays.
      needs: Steps whose results it is computed from.
      cost: Expected seconds, of use relative to the other steps.
    """

    title: str
    key: Mapping[str, Any]
    sources: tuple[str, ...]
    compute: Callable[..., Mapping[str, Any]]
    needs: tuple[Step, ...] = ()
    cost: float = 1.0


class Progress(Protocol):
    """Receives the progress of a run."""

    def plan(self, steps: Sequence[Step], cached: int) -> None:
        """These steps will be computed, in this order; `cached` others are there already."""

    def begin(self, step: Step) -> None:
        """A step begins."""

    def end(self, step: Step, seconds: float) -> None:
        """A step is done and its result kept."""


def run_steps(
    steps: Mapping[str, Step], store: Store, progress: Progress | None = None
) -> dict[str, dict[str, Any]]:
    """Results of steps, computed where the store has none.

    A step that several others need is computed once, and one that only stored steps need not at
    all. Results always come out of the store, so that those of a first run and those of a later
    one are the same.

    Args:
      steps: What is wanted, by any name.
      store: Where results are kept.
      progress: Receives the progress.

    Returns:
      The result of each of `steps`, by its name.
    """
    plan: dict[str, Step] = {}
    cached: set[str] = set()
    for step in steps.values():
        _add(step, store, plan, cached)
    if progress is not None:
        progress.plan(tuple(plan.values()), len(cached))
    for step in plan.values():
        if progress is not None:
            progress.begin(step)
        begin = time.perf_counter()
        store.save(step, step.compute(*(_kept(need, store) for need in step.needs)))
        if progress is not None:
            progress.end(step, time.perf_counter() - begin)
    return {name: _kept(step, store) for name, step in steps.items()}


def _add(step: Step, store: Store, plan: dict[str, Step], cached: set[str]) -> None:
    """Adds `step` to the plan, behind what it needs, unless the store has it."""
    name = store.name(step)
    if name in plan or name in cached:
        return
    # Whole results only count, so each is read; none is held, as towers are large.
    if store.load(step) is not None:
        cached.add(name)
        return
    for need in step.needs:
        _add(need, store, plan, cached)
    plan[name] = step


def _kept(step: Step, store: Store) -> dict[str, Any]:
    result = store.load(step)
    if result is None:
        raise ValueError(f"The result of {step.title!r} must stay in the store during a run.")
    return result
