"""Wires CutoffCalibrator: held-out clicks, towers and index in, the calibrated query model out."""

from __future__ import annotations

import json
from typing import ClassVar

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.types import BaseChannel, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter
from tfx.types.standard_artifacts import Examples, Model

from components.artifacts import CutoffModel, RetrievalIndex
from components.cutoff_calibrator.executor import Executor
from pebr_tf.config import Config


class CutoffCalibratorSpec(ComponentSpec):
    """The interface of CutoffCalibrator."""

    PARAMETERS: ClassVar = {
        "settings": ExecutionParameter(type=str),
        "source": ExecutionParameter(type=str),
    }
    INPUTS: ClassVar = {
        "examples": ChannelParameter(type=Examples),
        "model": ChannelParameter(type=Model),
        "index": ChannelParameter(type=RetrievalIndex),
    }
    OUTPUTS: ClassVar = {"cutoff": ChannelParameter(type=CutoffModel)}


class CutoffCalibrator(BaseComponent):
    """Tunes the cut-off on held-out clicks, refines the law, exports the query model."""

    SPEC_CLASS = CutoffCalibratorSpec
    EXECUTOR_SPEC = ExecutorClassSpec(Executor)

    def __init__(
        self,
        examples: BaseChannel,
        model: BaseChannel,
        index: BaseChannel,
        config: Config,
        source: str = "",
    ):
        settings = {
            "cutoff": config.cutoff.to_mapping(),
            "evaluation": {"average_k": config.evaluation.average_k},
        }
        super().__init__(
            CutoffCalibratorSpec(
                examples=examples,
                model=model,
                index=index,
                settings=json.dumps(settings, sort_keys=True),
                source=source,
                cutoff=Channel(type=CutoffModel),
            )
        )
