"""Wires IndexBuilder: catalogue, towers and held-out clicks in, the search index out."""

from tfx.dsl.components.base.base_beam_component import BaseBeamComponent
from tfx.dsl.components.base.executor_spec import BeamExecutorSpec
from tfx.types import BaseChannel
from tfx.types.standard_artifacts import Examples, Model

from components.artifacts import RetrievalIndex
from components.index_builder.executor import IndexBuilderExecutor
from components.index_builder.fit import wanted_of
from components.wiring import connected, interface
from pebr_tf.config import Config


class IndexBuilder(BaseBeamComponent):
    """Embeds every item of the catalogue once, with Beam, and builds the search index."""

    SPEC_CLASS = interface(
        inputs={
            "catalogue": Examples,
            "model": Model,
            "examples": Examples,
            "settings": str,
            "source": str,
        },
        outputs={"index": RetrievalIndex},
    )
    EXECUTOR_SPEC = BeamExecutorSpec(IndexBuilderExecutor)

    def __init__(self, config: Config, source: str = "", fit: bool = False, **inputs: BaseChannel):
        """With `fit`, the model comes from an earlier run and must fit the configuration."""
        settings = {
            "index": config.index.to_mapping(),
            "background_sample": config.cutoff.background_sample,
            "payload_columns": list(config.data.payload_columns),
            "fit": wanted_of(config) if fit else None,
        }
        super().__init__(connected(self.SPEC_CLASS, settings=settings, source=source, **inputs))
