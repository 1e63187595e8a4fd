"""Wires the component."""

from tfx.dsl.components.base.base_beam_component import BaseBeamComponent
from tfx.dsl.components.base.executor_spec import BeamExecutorSpec
from tfx.types.standard_artifacts import Examples

from components.artifacts import DeadLetters
from components.click_log_example_gen.driver import ClickLogExampleGenDriver
from components.click_log_example_gen.executor import ClickLogExampleGenExecutor
from components.click_log_example_gen.inputs import WANTED_SPAN
from components.click_log_example_gen.settings import exec_properties
from components.wiring import connected, interface
from pebr_tf.config import Config


class ClickLogExampleGen(BaseBeamComponent):
    """Click log and catalogue -> Examples in splits, samples, Examples of items, dead letters."""

    SPEC_CLASS = interface(
        inputs={"data": str, "split": str, "features": str, "source": str, WANTED_SPAN: int},
        outputs={
            "examples": Examples,
            "samples": Examples,
            "catalogue": Examples,
            "dead_letters": DeadLetters,
        },
        optional=(WANTED_SPAN,),
    )
    EXECUTOR_SPEC = BeamExecutorSpec(ClickLogExampleGenExecutor)
    DRIVER_CLASS = ClickLogExampleGenDriver

    def __init__(self, config: Config, source: str = "", span: int | None = None):
        """Checks the columns.

        `span` is in days since 1970 if the patterns have a date; None reads the latest. A new
        `source`, the digest of the code, invalidates the cache.

        Raises:
          UserError: The names or types of columns conflict.
        """
        wanted = {} if span is None else {WANTED_SPAN: span}
        inputs = {**exec_properties(config), **wanted, "source": source}
        super().__init__(connected(self.SPEC_CLASS, **inputs))
