"""Wires Pusher: cut-off, index, evaluation and blessing in, a release out."""

from __future__ import annotations

from typing import ClassVar

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.types import BaseChannel, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter
from tfx.types.standard_artifacts import Examples, Model, ModelBlessing

from components.artifacts import CutoffModel, PushedRelease, RetrievalEvaluation, RetrievalIndex
from components.pusher.executor import Executor
from pebr_tf.config import Config
from pebr_tf.release.pointers import Pointers


class PusherSpec(ComponentSpec):
    """The interface of Pusher."""

    PARAMETERS: ClassVar = {
        "config": ExecutionParameter(type=str),
        "pointers": ExecutionParameter(type=str),
        "releases": ExecutionParameter(type=str),
        "source": ExecutionParameter(type=str),
    }
    INPUTS: ClassVar = {
        "cutoff": ChannelParameter(type=CutoffModel),
        "index": ChannelParameter(type=RetrievalIndex),
        "evaluation": ChannelParameter(type=RetrievalEvaluation),
        "blessing": ChannelParameter(type=ModelBlessing),
        "examples": ChannelParameter(type=Examples),
        "model": ChannelParameter(type=Model),
    }
    OUTPUTS: ClassVar = {"release": ChannelParameter(type=PushedRelease)}


class Pusher(BaseComponent):
    """Writes a release and a pointer to its model if it was blessed, and nothing otherwise.

    TFX's own Pusher copies one model; a release is a model, an index and a cut-off that belong
    together, and appears as one.
    """

    SPEC_CLASS = PusherSpec
    EXECUTOR_SPEC = ExecutorClassSpec(Executor)

    def __init__(
        self,
        cutoff: BaseChannel,
        index: BaseChannel,
        evaluation: BaseChannel,
        blessing: BaseChannel,
        examples: BaseChannel,
        model: BaseChannel,
        config: Config,
        source: str = "",
    ):
        super().__init__(
            PusherSpec(
                cutoff=cutoff,
                index=index,
                evaluation=evaluation,
                blessing=blessing,
                examples=examples,
                model=model,
                config=config.to_yaml(comments=False),
                pointers=Pointers.folder_of(config),
                releases=config.pipeline.releases,
                source=source,
                release=Channel(type=PushedRelease),
            )
        )
