"""Wires RetrievalEvaluator: test clicks and a release's parts in, evaluation and blessing out."""

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.types import BaseChannel
from tfx.types.standard_artifacts import Examples, Model, ModelBlessing

from components.artifacts import CutoffModel, RetrievalEvaluation, RetrievalIndex
from components.retrieval_evaluator.executor import RetrievalEvaluatorExecutor
from components.wiring import connected, interface
from pebr_tf.config import Config


class RetrievalEvaluator(BaseComponent):
    """Compares every policy on test clicks, checks the knobs and the index, blesses or not.

    The baseline, the last blessed model or none, is measured on the same clicks. It embeds the
    items of `catalogue`; see `components.last_blessed_model`.
    """

    SPEC_CLASS = interface(
        inputs={
            "examples": Examples,
            "model": Model,
            "index": RetrievalIndex,
            "cutoff": CutoffModel,
            "catalogue": Examples,
            "baseline": Model,
            "settings": str,
            "releases": str,
            "source": str,
        },
        outputs={"evaluation": RetrievalEvaluation, "blessing": ModelBlessing},
        optional=("catalogue", "baseline"),
    )
    EXECUTOR_SPEC = ExecutorClassSpec(RetrievalEvaluatorExecutor)

    def __init__(self, config: Config, source: str = "", **inputs: BaseChannel):
        settings = {
            "cutoff": config.cutoff.to_mapping(),
            "evaluation": config.evaluation.to_mapping(),
            "split": config.split.to_mapping(),
        }
        super().__init__(
            connected(
                self.SPEC_CLASS,
                settings=settings,
                releases=config.pipeline.releases,
                source=source,
                **inputs,
            )
        )
