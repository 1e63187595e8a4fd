"""Wires Pusher: cut-off, index, evaluation and blessing in, a release out."""

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.types import BaseChannel
from tfx.types.standard_artifacts import Examples, Model, ModelBlessing

from components.artifacts import CutoffModel, PushedRelease, RetrievalEvaluation, RetrievalIndex
from components.pusher.executor import PusherExecutor
from components.wiring import connected, interface
from pebr_tf.config import Config
from pebr_tf.release.pointers import Pointers


class Pusher(BaseComponent):
    """Writes a release and a pointer to its model if it was blessed, and nothing otherwise.

    TFX's own Pusher copies one model; a release is a model, an index and a cut-off that belong
    together, and appears as one.
    """

    SPEC_CLASS = interface(
        inputs={
            "cutoff": CutoffModel,
            "index": RetrievalIndex,
            "evaluation": RetrievalEvaluation,
            "blessing": ModelBlessing,
            "examples": Examples,
            "model": Model,
            "config": str,
            "pointers": str,
            "releases": str,
            "source": str,
        },
        outputs={"release": PushedRelease},
    )
    EXECUTOR_SPEC = ExecutorClassSpec(PusherExecutor)

    def __init__(self, config: Config, source: str = "", **inputs: BaseChannel):
        super().__init__(
            connected(
                self.SPEC_CLASS,
                config=config.to_yaml(comments=False),
                pointers=Pointers.folder_of(config),
                releases=config.pipeline.releases,
                source=source,
                **inputs,
            )
        )
