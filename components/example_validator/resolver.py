"""Finds the last run that ExampleValidator accepted."""

from __future__ import annotations

import ml_metadata
from tfx.dsl.components.common.resolver import Resolver
from tfx.dsl.input_resolution.strategies.latest_artifact_strategy import LatestArtifactStrategy
from tfx.types import Artifact, Channel
from tfx.types.standard_artifacts import ExampleAnomalies


class LatestOrNone(LatestArtifactStrategy):
    """The latest artifact of each channel, or none, which TFX's strategy logs as a failure."""

    def resolve_artifacts(
        self, store: ml_metadata.MetadataStore, input_dict: dict[str, list[Artifact]]
    ) -> dict[str, list[Artifact]]:
        """See the base class."""
        del store
        return {
            name: sorted(artifacts, key=lambda artifact: artifact.id)[-1:]
            for name, artifacts in input_dict.items()
        }


def last_accepted_run(
    strategy_class: type[LatestArtifactStrategy] = LatestOrNone,
) -> Resolver:
    """A node whose output `last_accepted` is the last output of ExampleValidator, or nothing.

    TFX keeps no artifact of a failed component, so ExampleAnomalies exist for accepted runs only.
    ExampleStatistics of rejected runs are kept: a second try, with StatisticsGen cached, would
    compare the run with itself and accept it.

    Args:
      strategy_class: Kubeflow v2 compiles only LatestArtifactStrategy itself.
    """
    return Resolver(
        strategy_class=strategy_class, last_accepted=Channel(type=ExampleAnomalies)
    ).with_id("LastAcceptedRun")
