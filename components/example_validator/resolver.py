"""Finds the last run that ExampleValidator accepted."""

from __future__ import annotations

import ml_metadata
from tfx.dsl.components.common.resolver import Resolver
from tfx.dsl.input_resolution.strategies.latest_artifact_strategy import LatestArtifactStrategy
from tfx.types import Artifact, Channel
from tfx.types.standard_artifacts import ExampleAnomalies


class LatestOrNone(LatestArtifactStrategy):
    """The latest artifact of each channel, or none; TFX's own logs a failure when there is none."""

    def resolve_artifacts(
        self, store: ml_metadata.MetadataStore, input_dict: dict[str, list[Artifact]]
    ) -> dict[str, list[Artifact]]:
        """The latest of each list that has any; see the base class."""
        del store
        return {
            name: sorted(artifacts, key=lambda artifact: artifact.id)[-1:]
            for name, artifacts in input_dict.items()
        }


def last_accepted_run(
    strategy_class: type[LatestArtifactStrategy] = LatestOrNone,
) -> Resolver:
    """A node whose output `last_accepted` is what ExampleValidator wrote last, or nothing.

    TFX keeps no artifact of a failed component, so there are ExampleAnomalies of accepted runs
    only. The latest ExampleStatistics would not do: those of a refused run are kept, and a second
    try, with StatisticsGen cached, would compare the run with itself and let it pass.

    Args:
      strategy_class: Kubeflow v2 compiles LatestArtifactStrategy itself and no other.
    """
    return Resolver(
        strategy_class=strategy_class, last_accepted=Channel(type=ExampleAnomalies)
    ).with_id("LastAcceptedRun")
