"""Wires LastBlessedModel: the pointers of the pipeline in, a model out."""

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.types import BaseChannel
from tfx.types.standard_artifacts import Examples, Model

from components.last_blessed_model.driver import LastBlessedModelDriver
from components.last_blessed_model.executor import LastBlessedModelExecutor, reading_of
from components.wiring import connected, interface
from pebr_tf.config import Config
from pebr_tf.release.pointers import Pointers


class LastBlessedModel(BaseComponent):
    """Copies the newest blessed model of this pipeline whose release is not withdrawn.

    TFX's resolvers do not run on open-source Kubeflow, find models of all pipelines on Vertex AI,
    and do not know of `pebr rollback`.
    """

    SPEC_CLASS = interface(
        inputs={"examples": Examples, "pointers": str, "releases": str, "reading": str},
        outputs={"model": Model},
        optional=("examples",),
    )
    EXECUTOR_SPEC = ExecutorClassSpec(LastBlessedModelExecutor)
    DRIVER_CLASS = LastBlessedModelDriver

    def __init__(self, config: Config, examples: BaseChannel | None = None):
        """Models that were trained on `examples` are skipped, and there may be none.

        Without `examples`, the run is index-only: no model is skipped, and there must be one.
        """
        super().__init__(
            connected(
                self.SPEC_CLASS,
                pointers=Pointers.folder_of(config),
                releases=config.pipeline.releases,
                reading=reading_of(config),
                examples=examples,
            )
        )
