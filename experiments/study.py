"""Trained towers of one corpus, with what every experiment asks of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.corpora import Corpus, corpus
from experiments.settings import ExperimentSettings
from pebr_tf.config import Config
from pebr_tf.cutoff.candidates import (
    Candidates,
    ClickedPairs,
    QueryVectors,
    candidate_depth,
    collect_candidates,
)
from pebr_tf.distributions.logit import Family
from pebr_tf.models.two_tower import family_of

SOURCES = (
    "pebr_tf.cutoff",
    "pebr_tf.metrics",
    "pebr_tf.distributions",
    "experiments.study",
)


@dataclass(frozen=True)
class Study:
    """Towers and the log that they were trained on.

    Attributes:
      corpus: The log.
      config: What the towers were trained with.
      items: [N, n] float32 unit vectors.
      queries: All Q queries of the log.
    """

    corpus: Corpus
    config: Config
    items: np.ndarray
    queries: QueryVectors

    @property
    def family(self) -> Family:
        """Which logit the towers were trained with."""
        return family_of(self.config.loss)

    def rows(self, split: str) -> np.ndarray:
        """[q] places in `corpus.queries` of the queries that have clicks in a split."""
        return np.unique(self.corpus.pairs(split).rows)

    def candidates(
        self,
        split: str,
        level_temperatures: Sequence[float],
        depth: int | None = None,
        known: bool = False,
    ) -> Candidates:
        """The best items of a split's queries, with its clicks as the truth.

        Args:
          split: "calibrate" or "test".
          level_temperatures: To take the levels at.
          depth: Items of each; None: as the pipeline has them.
          known: Also find the pairs of the training split, for `Candidates.unseen`.
        """
        return self._collected(
            self.corpus.pairs(split), self.rows(split), level_temperatures, depth, known
        )

    def truth(
        self, split: str, level_temperatures: Sequence[float], depth: int | None = None
    ) -> Candidates:
        """The same queries with all their relevant items as the truth, clicked or not."""
        if self.corpus.truth is None:
            raise ValueError(f"{self.corpus.name} must have a known truth.")
        return self._collected(
            self.corpus.truth, self.rows(split), level_temperatures, depth, False
        )

    def real_clicks(
        self, split: str, level_temperatures: Sequence[float], depth: int | None = None
    ) -> Candidates:
        """The same with those clicks of a split as the truth that are on relevant items, no noise.

        Queries that have no other click are left out.
        """
        if self.corpus.truth is None:
            raise ValueError(f"{self.corpus.name} must have a known truth.")
        clicks, truth = self.corpus.pairs(split), self.corpus.truth
        keys, known = (pairs.rows * len(self.items) + pairs.items for pairs in (clicks, truth))
        real = np.isin(keys, known)
        clicks = ClickedPairs(clicks.rows[real], clicks.items[real])
        return self._collected(clicks, np.unique(clicks.rows), level_temperatures, depth, False)

    def _collected(
        self,
        relevant: ClickedPairs,
        rows: np.ndarray,
        level_temperatures: Sequence[float],
        depth: int | None,
        known: bool,
    ) -> Candidates:
        evaluation, limit = self.config.evaluation, self.config.cutoff.limit
        deep = candidate_depth(len(rows), len(self.items), evaluation.average_k, limit)
        return collect_candidates(
            self.items,
            self.queries.part(rows),
            _among(relevant, rows),
            self.family,
            level_temperatures,
            min(depth or deep, len(self.items)),
            _among(self.corpus.pairs("train"), rows) if known else None,
        )


def study(
    settings: ExperimentSettings,
    dataset: str,
    towers: Mapping[str, Any],
    changes: Mapping[str, Any] | None = None,
) -> Study:
    """The study of trained towers.

    Args:
      settings: As for `tower_step`.
      dataset: As for `tower_step`.
      towers: Its result.
      changes: As for `tower_step`.
    """
    data = corpus(settings, dataset)
    config = settings.config(dataset).replace_all(dict(changes or {}))
    breadth = np.bincount(data.pairs("train").rows, minlength=len(data.queries))
    queries = QueryVectors(towers["vectors"], towers["tau"], data.strata, breadth)
    return Study(data, config, towers["items"], queries)


def _among(pairs: ClickedPairs, rows: np.ndarray) -> ClickedPairs:
    """The pairs of some queries, which are counted from 0 in the order of `rows` [q], rising."""
    inside = np.isin(pairs.rows, rows)
    return ClickedPairs(np.searchsorted(rows, pairs.rows[inside]), pairs.items[inside])
