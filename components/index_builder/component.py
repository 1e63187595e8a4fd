"""Wires IndexBuilder: catalogue, towers and held-out clicks in, the search index out."""

from __future__ import annotations

import json
from typing import ClassVar

from tfx.dsl.components.base.base_beam_component import BaseBeamComponent
from tfx.dsl.components.base.executor_spec import BeamExecutorSpec
from tfx.types import BaseChannel, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter
from tfx.types.standard_artifacts import Examples, Model

from components.artifacts import RetrievalIndex
from components.index_builder.executor import Executor
from components.index_builder.fit import wanted_of
from pebr_tf.config import Config


class IndexBuilderSpec(ComponentSpec):
    """The interface of IndexBuilder."""

    PARAMETERS: ClassVar = {
        "settings": ExecutionParameter(type=str),
        "source": ExecutionParameter(type=str),
    }
    INPUTS: ClassVar = {
        "catalogue": ChannelParameter(type=Examples),
        "model": ChannelParameter(type=Model),
        "examples": ChannelParameter(type=Examples),
    }
    OUTPUTS: ClassVar = {"index": ChannelParameter(type=RetrievalIndex)}


class IndexBuilder(BaseBeamComponent):
    """Embeds every item of the catalogue once, with Beam, and builds the search index."""

    SPEC_CLASS = IndexBuilderSpec
    EXECUTOR_SPEC = BeamExecutorSpec(Executor)

    def __init__(
        self,
        catalogue: BaseChannel,
        model: BaseChannel,
        examples: BaseChannel,
        config: Config,
        source: str = "",
        fit: bool = False,
    ):
        """With `fit`, the model comes from an earlier run and must fit the configuration."""
        settings = {
            "index": config.index.to_mapping(),
            "background_sample": config.cutoff.background_sample,
            "payload_columns": list(config.data.payload_columns),
            "fit": wanted_of(config) if fit else None,
        }
        super().__init__(
            IndexBuilderSpec(
                catalogue=catalogue,
                model=model,
                examples=examples,
                settings=json.dumps(settings, sort_keys=True),
                source=source,
                index=Channel(type=RetrievalIndex),
            )
        )
