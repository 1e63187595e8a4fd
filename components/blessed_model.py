"""Finds the last blessed model, which training starts from and evaluation compares with."""

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

from components.artifacts import PushedRelease
from pebr_tf.release.versions import withdrawn

NODE = "LastBlessedModel"
MODEL, BLESSING, EXAMPLES = "model", "model_blessing", "examples"
_READ = (metadata_store_pb2.Event.INPUT, metadata_store_pb2.Event.DECLARED_INPUT)
# Without the outputs of resolvers, which create nothing.
_CREATED = (metadata_store_pb2.Event.OUTPUT, metadata_store_pb2.Event.DECLARED_OUTPUT)


class LastBlessedModel(ResolverStrategy):
    """The latest blessed model that was not trained on these examples and is not withdrawn.

    TFX's strategy takes the latest. Every further run on the same clicks would find the model of
    the run before and train again. It also ignores `pebr rollback`.
    """

    def __init__(self, releases: str):
        self._releases = releases

    def resolve_artifacts(
        self, store: ml_metadata.MetadataStore, input_dict: dict[str, list[Artifact]]
    ) -> dict[str, list[Artifact]]:
        """Returns one model with its blessing, or none; see the base class."""
        models = {model.id: model for model in input_dict[MODEL]}
        examples = {artifact.id for artifact in input_dict.get(EXAMPLES, ())}
        withdrawn_ids = self._withdrawn(store)
        found: dict[str, list[Artifact]] = {name: [] for name in input_dict}
        for blessing in sorted(input_dict[BLESSING], key=lambda artifact: -artifact.id):
            key = constants.ARTIFACT_PROPERTY_CURRENT_MODEL_ID_KEY
            model = models.get(blessing.get_int_custom_property(key))
            if model is None or not is_model_blessed(blessing) or blessing.id in withdrawn_ids:
                continue
            if not examples & _origins(store, [model.id]):
                return {**found, MODEL: [model], BLESSING: [blessing]}
        return found

    def _withdrawn(self, store: ml_metadata.MetadataStore) -> set[int]:
        """Ids of all inputs of withdrawn releases, including their blessings."""
        versions = withdrawn(Path(self._releases))
        if not versions:
            return set()
        pushed = store.get_artifacts_by_type(PushedRelease.TYPE_NAME)
        gone = [each.id for each in pushed if _version(each) in versions]
        return _origins(store, gone)


def last_blessed_model(releases: str, examples: BaseChannel | None) -> Resolver:
    """A node whose output `model` is the last blessed model, or nothing.

    Models that were trained on `examples` are skipped; None: no model is skipped.
    """
    others = {} if examples is None else {EXAMPLES: examples}
    return Resolver(
        strategy_class=LastBlessedModel,
        config={"releases": releases},
        **{MODEL: Channel(type=Model), BLESSING: Channel(type=ModelBlessing)},
        **others,
    ).with_id(NODE)


def latest_blessed_model() -> Resolver:
    """The same with TFX's strategy, because Kubeflow v2 compiles no other."""
    return Resolver(
        strategy_class=LatestBlessedModelStrategy,
        **{MODEL: Channel(type=Model), BLESSING: Channel(type=ModelBlessing)},
    ).with_id(NODE)


def _version(release: metadata_store_pb2.Artifact) -> int:
    return release.custom_properties[PushedRelease.VERSION].int_value


def _origins(store: ml_metadata.MetadataStore, artifacts: Iterable[int]) -> set[int]:
    events = store.get_events_by_artifact_ids(list(artifacts))
    creators = {event.execution_id for event in events if event.type in _CREATED}
    events = store.get_events_by_execution_ids(list(creators)) if creators else ()
    return {event.artifact_id for event in events if event.type in _READ}
