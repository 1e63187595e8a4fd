"""Wires ExampleValidator: statistics and schema in, anomalies out."""

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.types import BaseChannel
from tfx.types.standard_artifacts import ExampleAnomalies, ExampleStatistics, Schema

from components.example_validator.executor import ExampleValidatorExecutor
from components.wiring import connected, interface
from pebr_tf.config import Config
from pebr_tf.release.pointers import Pointers


class ExampleValidator(BaseComponent):
    """Checks every split against the schema, train and the last accepted run.

    An anomaly stops the run with an error. The ExampleValidator of TFX only records anomalies and
    does not compare with earlier runs. It must not be cached: it reads and writes a pointer.
    """

    SPEC_CLASS = interface(
        inputs={
            "statistics": ExampleStatistics,
            "schema": Schema,
            "settings": str,
            "pointers": str,
            "releases": str,
            "source": str,
        },
        outputs={"anomalies": ExampleAnomalies},
    )
    EXECUTOR_SPEC = ExecutorClassSpec(ExampleValidatorExecutor)

    def __init__(self, config: Config, source: str = "", **inputs: BaseChannel):
        super().__init__(
            connected(
                self.SPEC_CLASS,
                settings={
                    "inferred": config.data.schema is None,
                    "drift_limit": config.data.drift_limit,
                    "skew_limit": config.data.skew_limit,
                    # A split by a hash is skewed only by frequent queries and items.
                    "skew_stops": config.data.schema is not None or config.split.by == "time",
                },
                pointers=Pointers.folder_of(config),
                releases=config.pipeline.releases,
                source=source,
                **inputs,
            )
        )
