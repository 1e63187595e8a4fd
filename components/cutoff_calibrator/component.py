"""Wires CutoffCalibrator: held-out clicks, towers and index in, the calibrated query model out."""

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.types import BaseChannel
from tfx.types.standard_artifacts import Examples, Model

from components.artifacts import CutoffModel, RetrievalIndex
from components.cutoff_calibrator.executor import CutoffCalibratorExecutor
from components.wiring import connected, interface
from pebr_tf.config import Config


class CutoffCalibrator(BaseComponent):
    """Tunes the cut-off on held-out clicks, refines the law, exports the query model."""

    SPEC_CLASS = interface(
        inputs={
            "examples": Examples,
            "model": Model,
            "index": RetrievalIndex,
            "settings": str,
            "source": str,
        },
        outputs={"cutoff": CutoffModel},
    )
    EXECUTOR_SPEC = ExecutorClassSpec(CutoffCalibratorExecutor)

    def __init__(self, config: Config, source: str = "", **inputs: BaseChannel):
        settings = {
            "cutoff": config.cutoff.to_mapping(),
            "evaluation": {"average_k": config.evaluation.average_k},
        }
        super().__init__(connected(self.SPEC_CLASS, settings=settings, source=source, **inputs))
