"""Wires the component."""

from __future__ import annotations

from typing import ClassVar

from tfx import types
from tfx.dsl.components.base.base_beam_component import BaseBeamComponent
from tfx.dsl.components.base.executor_spec import BeamExecutorSpec
from tfx.types import standard_artifacts
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from components.artifacts import DeadLetters
from components.click_log_example_gen.driver import Driver
from components.click_log_example_gen.executor import Executor
from components.click_log_example_gen.inputs import WANTED_SPAN
from components.click_log_example_gen.settings import exec_properties
from pebr_tf.config import Config


class ClickLogExampleGenSpec(ComponentSpec):
    """Settings in, four artifacts out."""

    PARAMETERS: ClassVar = {
        "data": ExecutionParameter(type=str),
        "split": ExecutionParameter(type=str),
        "features": ExecutionParameter(type=str),
        "source": ExecutionParameter(type=str),
        WANTED_SPAN: ExecutionParameter(type=int, optional=True),
    }
    INPUTS: ClassVar[dict[str, ChannelParameter]] = {}
    OUTPUTS: ClassVar = {
        "examples": ChannelParameter(type=standard_artifacts.Examples),
        "samples": ChannelParameter(type=standard_artifacts.Examples),
        "catalogue": ChannelParameter(type=standard_artifacts.Examples),
        "dead_letters": ChannelParameter(type=DeadLetters),
    }


class ClickLogExampleGen(BaseBeamComponent):
    """Click log and catalogue -> Examples in splits, samples, Examples of items, dead letters."""

    SPEC_CLASS = ClickLogExampleGenSpec
    EXECUTOR_SPEC = BeamExecutorSpec(Executor)
    DRIVER_CLASS = Driver

    def __init__(self, config: Config, source: str = "", span: int | None = None):
        """Constructs the component.

        `span` is in days since 1970 if the patterns have a date; None reads the latest. A new
        `source`, the digest of the code, invalidates the cache.

        Raises:
          UserError: The names or types of columns conflict.
        """
        super().__init__(
            spec=ClickLogExampleGenSpec(
                **exec_properties(config),
                source=source,
                **({} if span is None else {WANTED_SPAN: span}),
                examples=types.Channel(type=standard_artifacts.Examples),
                samples=types.Channel(type=standard_artifacts.Examples),
                catalogue=types.Channel(type=standard_artifacts.Examples),
                dead_letters=types.Channel(type=DeadLetters),
            )
        )
