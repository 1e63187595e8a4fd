"""The cut-off as a release of some towers has it: tuned level_temperature and calibrated knobs."""

from dataclasses import dataclass

import numpy as np

from experiments.study import SOURCES as STUDY_SOURCES
from experiments.study import Study
from pebr_tf.cutoff.calibration import Calibration, bounded_counts, calibrate
from pebr_tf.cutoff.candidates import Candidates
from pebr_tf.cutoff.level_temperature import level_temperatures_for, tune_level_temperature
from pebr_tf.cutoff.policies.level import LevelPolicy
from pebr_tf.metrics.ranked import RankedLists

SOURCES = (*STUDY_SOURCES, "experiments.released")


@dataclass(frozen=True)
class Released:
    """What the calibrate split says of some towers.

    Attributes:
      policy: The level, with the level temperature that was tuned.
      calibration: Of the level, overall and by stratum.
      test: The best items of the test queries.
      lists: The same, scored by the level.
    """

    policy: LevelPolicy
    calibration: Calibration
    test: Candidates
    lists: RankedLists

    def counts(self, recall: float, *, by_stratum: bool = True) -> np.ndarray:
        """[Q] items of the test queries when a share of the relevant is asked for.

        Args:
          recall: The share.
          by_stratum: As served, with the offsets of the strata; else without.
        """
        strata = self.test.queries.strata
        calibration = self.calibration
        if by_stratum:
            cutoffs = calibration.cutoff_for("recall", recall, strata)
        else:
            cutoffs = np.full(len(strata), calibration.recall.cutoff(recall), np.float32)
        counts = self.lists.counts_at(cutoffs)
        return bounded_counts(self.lists, counts, calibration.floor, calibration.limit)


def released(study: Study) -> Released:
    """Tunes T and calibrates the knobs on the calibrate split, as the pipeline does."""
    cutoff = study.config.cutoff
    calibrate_part = study.candidates("calibrate", level_temperatures_for(cutoff.level_temperature))
    level_tuning = tune_level_temperature(
        calibrate_part, study.config.evaluation.average_k, cutoff.level_temperature
    )
    policy = LevelPolicy(level_temperature=level_tuning.level_temperature, family=study.family)
    calibration = calibrate(
        policy.lists(calibrate_part),
        calibrate_part.queries.strata,
        "level",
        study.family,
        level_tuning.level_temperature,
        cutoff,
        study.config.evaluation.average_k,
    )
    test = study.candidates("test", (level_tuning.level_temperature,))
    return Released(policy, calibration, test, policy.lists(test))
