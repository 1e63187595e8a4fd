"""The level: the logit less the query's level, measured over the catalogue or predicted."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from pebr_tf.config import Cutoff
from pebr_tf.cutoff.candidates import Candidates
from pebr_tf.cutoff.policies.base import Policy
from pebr_tf.distributions.logit import cosine_of_logit
from pebr_tf.retrieval import RangeResult, Searcher
from pebr_tf.retrieval.encoded import EncodedQueries
from pebr_tf.retrieval.level import LevelCut, search_by_level


@dataclass(frozen=True, kw_only=True)
class LevelPolicy(Policy):
    """score = logit - level_q(T), with the level from a small search.

    Attributes:
      level_temperature: T of the level.
      probe_size: Items of the small search.
    """

    name = "level"
    level_source = "probe"

    level_temperature: float
    probe_size: int = Cutoff.probe_size

    @property
    def title(self) -> str:
        return f"level, T = {self.level_temperature:g}"

    def scores(self, candidates: Candidates) -> np.ndarray:
        return candidates.logits

    def offsets(self, candidates: Candidates) -> np.ndarray | None:
        return candidates.levels[self.level_temperature]

    def threshold(self, cutoffs: Any, encoded: Any) -> tf.Tensor | None:
        return cosine_of_logit(cutoffs + encoded.level, encoded.tau, self.family)

    def _search(
        self, searcher: Searcher, encoded: EncodedQueries, cutoffs: np.ndarray, limit: int
    ) -> tuple[RangeResult, np.ndarray]:
        size = max(self.probe_size, self.floor)
        cut = LevelCut(cutoffs, self.level_temperature, self.family, size, self.floor)
        found = search_by_level(searcher, encoded.embedding, encoded.tau, cut, limit)
        return found.items, found.levels


class SampleLevelPolicy(LevelPolicy):
    """The same score with the level from the items that the query model holds."""

    name = "level_sample"
    level_source = "sample"

    @property
    def title(self) -> str:
        return f"level from a sample, T = {self.level_temperature:g}"

    def applies_to(self, candidates: Candidates) -> bool:
        return candidates.sample_levels is not None

    def offsets(self, candidates: Candidates) -> np.ndarray | None:
        if candidates.sample_levels is None:
            raise ValueError("candidates must have sample_levels. Received: none.")
        return candidates.sample_levels

    # Lists end at a cosine that is known before the search.
    _search = Policy._search
