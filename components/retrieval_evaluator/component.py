"""Wires RetrievalEvaluator: test clicks and all that is to be released in, a verdict out."""

from __future__ import annotations

import json
from typing import ClassVar

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.types import BaseChannel, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter
from tfx.types.standard_artifacts import Examples, Model, ModelBlessing

from components.artifacts import CutoffModel, RetrievalEvaluation, RetrievalIndex
from components.retrieval_evaluator.executor import Executor
from pebr_tf.config import Config


class RetrievalEvaluatorSpec(ComponentSpec):
    """The interface of RetrievalEvaluator."""

    PARAMETERS: ClassVar = {
        "settings": ExecutionParameter(type=str),
        "releases": ExecutionParameter(type=str),
        "source": ExecutionParameter(type=str),
    }
    INPUTS: ClassVar = {
        "examples": ChannelParameter(type=Examples),
        "model": ChannelParameter(type=Model),
        "index": ChannelParameter(type=RetrievalIndex),
        "cutoff": ChannelParameter(type=CutoffModel),
        "catalogue": ChannelParameter(type=Examples, optional=True),
        "baseline": ChannelParameter(type=Model, optional=True),
    }
    OUTPUTS: ClassVar = {
        "evaluation": ChannelParameter(type=RetrievalEvaluation),
        "blessing": ChannelParameter(type=ModelBlessing),
    }


class RetrievalEvaluator(BaseComponent):
    """Compares every policy on test clicks, checks the knobs and the index, blesses or not."""

    SPEC_CLASS = RetrievalEvaluatorSpec
    EXECUTOR_SPEC = ExecutorClassSpec(Executor)

    def __init__(
        self,
        examples: BaseChannel,
        model: BaseChannel,
        index: BaseChannel,
        cutoff: BaseChannel,
        config: Config,
        source: str = "",
        catalogue: BaseChannel | None = None,
        baseline: BaseChannel | None = None,
    ):
        """The baseline, the last blessed model or none, is measured on the same clicks.

        It embeds the items of `catalogue`; see `components.last_blessed_model`.
        """
        settings = {
            "cutoff": config.cutoff.to_mapping(),
            "evaluation": config.evaluation.to_mapping(),
            "split": config.split.to_mapping(),
        }
        super().__init__(
            RetrievalEvaluatorSpec(
                examples=examples,
                model=model,
                index=index,
                cutoff=cutoff,
                catalogue=catalogue,
                baseline=baseline,
                settings=json.dumps(settings, sort_keys=True),
                releases=config.pipeline.releases,
                source=source,
                evaluation=Channel(type=RetrievalEvaluation),
                blessing=Channel(type=ModelBlessing),
            )
        )
