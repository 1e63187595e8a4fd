"""Towers that were not trained, on the small log."""

from __future__ import annotations

from experiment_runs import untrained
from small_logs import small_corpus

from experiments.study import Study
from pebr_tf.cutoff.candidates import QueryVectors


def random_towers() -> Study:
    """Unit vectors of eight numbers, and temperatures from .05 to .3."""
    data = small_corpus()
    towers = untrained(data, data.config)
    queries = QueryVectors(towers["vectors"], towers["tau"], data.strata)
    return Study(data, data.config, towers["items"], queries)


def clicked_in(towers: Study, split: str) -> dict[int, set[int]]:
    """Items by query that were clicked in a split, row by row."""
    place = ("train", "calibrate", "test").index(split)
    found: dict[int, set[int]] = {}
    data = towers.corpus
    for query, item, of_split in zip(data.query, data.item, data.split, strict=True):
        if of_split == place:
            found.setdefault(int(query), set()).add(int(item))
    return dict(sorted(found.items()))
