"""Wires ExampleValidator: statistics and schema in, anomalies out."""

import json
from typing import ClassVar

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.types import BaseChannel, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter
from tfx.types.standard_artifacts import ExampleAnomalies, ExampleStatistics, Schema

from components.example_validator.executor import Executor
from pebr_tf.config import Config
from pebr_tf.release.pointers import Pointers


class ExampleValidatorSpec(ComponentSpec):
    """The interface of ExampleValidator."""

    PARAMETERS: ClassVar = {
        "settings": ExecutionParameter(type=str),
        "pointers": ExecutionParameter(type=str),
        "releases": ExecutionParameter(type=str),
        "source": ExecutionParameter(type=str),
    }
    INPUTS: ClassVar = {
        "statistics": ChannelParameter(type=ExampleStatistics),
        "schema": ChannelParameter(type=Schema),
    }
    OUTPUTS: ClassVar = {"anomalies": ChannelParameter(type=ExampleAnomalies)}


class ExampleValidator(BaseComponent):
    """Checks every split against the schema, train and the last accepted run.

    An anomaly stops the run with an error. The ExampleValidator of TFX only records anomalies and
    does not compare with earlier runs. It must not be cached: it reads and writes a pointer.
    """

    SPEC_CLASS = ExampleValidatorSpec
    EXECUTOR_SPEC = ExecutorClassSpec(Executor)

    def __init__(
        self,
        statistics: BaseChannel,
        schema: BaseChannel,
        config: Config,
        source: str = "",
    ):
        settings = {
            "inferred": config.data.schema is None,
            "drift_limit": config.data.drift_limit,
            "skew_limit": config.data.skew_limit,
        }
        super().__init__(
            ExampleValidatorSpec(
                statistics=statistics,
                schema=schema,
                settings=json.dumps(settings, sort_keys=True),
                pointers=Pointers.folder_of(config),
                releases=config.pipeline.releases,
                source=source,
                anomalies=Channel(type=ExampleAnomalies),
            )
        )
