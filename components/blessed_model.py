"""Finds the last blessed model: what the next training starts from and is compared with."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import ml_metadata
from ml_metadata.proto import metadata_store_pb2
from tfx.components.evaluator import constants
from tfx.components.util.model_utils import is_model_blessed
from tfx.dsl.components.common.resolver import Resolver, ResolverStrategy
from tfx.dsl.input_resolution.strategies.latest_blessed_model_strategy import (
    LatestBlessedModelStrategy,
)
from tfx.types import Artifact, BaseChannel, Channel
from tfx.types.standard_artifacts import Model, ModelBlessing

from components.artifacts import Release
from serving.versions import withdrawn

NODE = "LastBlessedModel"
MODEL, BLESSING, EXAMPLES = "model", "model_blessing", "examples"
_READ = (metadata_store_pb2.Event.INPUT, metadata_store_pb2.Event.DECLARED_INPUT)
# Not those of resolvers, which make nothing.
_MADE = (metadata_store_pb2.Event.OUTPUT, metadata_store_pb2.Event.DECLARED_OUTPUT)


class LastBlessedModel(ResolverStrategy):
    """The latest blessed model that was not trained on these examples and is not withdrawn.

    TFX's own takes the latest: a second run on the same clicks would find the model of the first,
    and so train anew, without end. It also knows nothing of `pebr rollback`.
    """

    def __init__(self, releases: str):
        """Makes the strategy; `releases` is their folder, for what is withdrawn there."""
        self._releases = releases

    def resolve_artifacts(
        self, store: ml_metadata.MetadataStore, input_dict: dict[str, list[Artifact]]
    ) -> dict[str, list[Artifact]]:
        """One model with its blessing, or none; see the base class."""
        models = {model.id: model for model in input_dict[MODEL]}
        examples = {artifact.id for artifact in input_dict.get(EXAMPLES, ())}
        refused = self._withdrawn(store)
        found: dict[str, list[Artifact]] = {name: [] for name in input_dict}
        for blessing in sorted(input_dict[BLESSING], key=lambda artifact: -artifact.id):
            key = constants.ARTIFACT_PROPERTY_CURRENT_MODEL_ID_KEY
            model = models.get(blessing.get_int_custom_property(key))
            if model is None or not is_model_blessed(blessing) or blessing.id in refused:
                continue
            if not examples & _origins(store, [model.id]):
                return {**found, MODEL: [model], BLESSING: [blessing]}
        return found

    def _withdrawn(self, store: ml_metadata.MetadataStore) -> set[int]:
        """Everything that withdrawn releases were made of, their blessings included."""
        versions = withdrawn(Path(self._releases))
        if not versions:
            return set()
        pushed = store.get_artifacts_by_type(Release.TYPE_NAME)
        gone = [each.id for each in pushed if _version(each) in versions]
        return _origins(store, gone)


def last_blessed_model(releases: str, examples: BaseChannel | None) -> Resolver:
    """A node whose output `model` is the last blessed model, or nothing.

    Args:
      releases: Folder of releases.
      examples: Models that were trained on these do not count; None: all do.
    """
    others = {} if examples is None else {EXAMPLES: examples}
    return Resolver(
        strategy_class=LastBlessedModel,
        config={"releases": releases},
        **{MODEL: Channel(type=Model), BLESSING: Channel(type=ModelBlessing)},
        **others,
    ).with_id(NODE)


def latest_blessed_model() -> Resolver:
    """The same by TFX's own strategy, for Kubeflow v2, which compiles no other."""
    return Resolver(
        strategy_class=LatestBlessedModelStrategy,
        **{MODEL: Channel(type=Model), BLESSING: Channel(type=ModelBlessing)},
    ).with_id(NODE)


def _version(release: metadata_store_pb2.Artifact) -> int:
    return release.custom_properties["version"].int_value


def _origins(store: ml_metadata.MetadataStore, artifacts: Iterable[int]) -> set[int]:
    """The artifacts that went into those who made `artifacts`."""
    made = store.get_events_by_artifact_ids(list(artifacts))
    makers = {event.execution_id for event in made if event.type in _MADE}
    events = store.get_events_by_execution_ids(list(makers)) if makers else ()
    return {event.artifact_id for event in events if event.type in _READ}
