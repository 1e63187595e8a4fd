"""The pipeline, in the order of its flow: from click logs to a pushed release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfx.components.schema_gen.component import SchemaGen
from tfx.components.statistics_gen.component import StatisticsGen
from tfx.components.trainer.component import Trainer
from tfx.components.transform.component import Transform
from tfx.dsl.components.base.base_node import BaseNode
from tfx.orchestration.metadata import sqlite_metadata_connection_config
from tfx.orchestration.pipeline import Pipeline
from tfx.proto import trainer_pb2, transform_pb2

from components.click_log_example_gen.component import ClickLogExampleGen
from components.cutoff_calibrator.component import CutoffCalibrator
from components.example_validator.component import ExampleValidator
from components.example_validator.resolver import last_accepted_run
from components.index_builder.component import IndexBuilder
from components.pusher.component import Pusher
from components.retrieval_evaluator.component import RetrievalEvaluator
from components.reviewed_schema import ImportSchemaGen
from pebr_tf.config import Config
from pebr_tf.errors import UserError
from pipeline import trainer
from pipeline.source import source_digest


def components_of(config: Config) -> list[BaseNode]:
    """Every node, each after what it needs."""
    example_gen = ClickLogExampleGen(config, _source("click_log_example_gen"))
    examples = example_gen.outputs["examples"]
    statistics = StatisticsGen(examples=examples)
    if config.data.schema is None:
        schema = SchemaGen(statistics=statistics.outputs["statistics"], infer_feature_shape=True)
    else:
        schema = ImportSchemaGen(schema_file=config.data.schema)
    accepted = last_accepted_run()
    validator = ExampleValidator(
        statistics.outputs["statistics"],
        schema.outputs["schema"],
        config,
        accepted.outputs["last_accepted"],
        _source("example_validator"),
    )
    transform = Transform(
        examples=examples,
        schema=schema.outputs["schema"],
        preprocessing_fn="pipeline.preprocessing.preprocessing_fn",
        splits_config=transform_pb2.SplitsConfig(analyze=["train"], transform=[]),
        custom_config={
            "features": config.features.to_mapping(),
            "strata": config.strata.to_mapping(),
            "source": source_digest("pipeline.preprocessing"),
        },
        materialize=False,
        disable_statistics=True,
    )
    # Data that were refused are not trained on; by order, for the validator is never cached.
    transform.add_upstream_node(validator)
    sections = config.to_mapping()
    training = Trainer(
        run_fn="pipeline.trainer.run_fn",
        examples=examples,
        transform_graph=transform.outputs["transform_graph"],
        train_args=trainer_pb2.TrainArgs(splits=["train"]),
        eval_args=trainer_pb2.EvalArgs(splits=["calibrate"]),
        custom_config={
            "config": {name: sections[name] for name in trainer.SECTIONS},
            "checkpoints": f"{config.pipeline.root}/checkpoints",
            "releases": config.pipeline.releases,
            "source": source_digest("pipeline.trainer"),
        },
    )
    model = training.outputs["model"]
    builder = IndexBuilder(
        example_gen.outputs["catalogue"], model, examples, config, _source("index_builder")
    )
    index = builder.outputs["index"]
    calibrator = CutoffCalibrator(examples, model, index, config, _source("cutoff_calibrator"))
    cutoff = calibrator.outputs["cutoff"]
    evaluator = RetrievalEvaluator(
        examples, model, index, cutoff, config, _source("retrieval_evaluator")
    )
    pusher = Pusher(
        cutoff,
        index,
        evaluator.outputs["evaluation"],
        evaluator.outputs["blessing"],
        examples,
        config,
        source=_source("pusher"),
    )
    return [
        *(example_gen, statistics, schema, accepted, validator, transform),
        *(training, builder, calibrator, evaluator, pusher),
    ]


def create_pipeline(
    config: Config,
    until: str | None = None,
    cache: bool = True,
    metadata: Any = None,
) -> Pipeline:
    """The pipeline that a config describes.

    Args:
      config: All of it.
      until: The last component, with all that it needs; None: all.
      cache: Whether results of earlier runs are taken where nothing has changed.
      metadata: Connection to MLMD; None: a SQLite file in the pipeline's root.
    """
    root = config.pipeline.root
    nodes = components_of(config)
    return Pipeline(
        pipeline_name=config.pipeline.name,
        pipeline_root=f"{root}/artifacts",
        components=nodes if until is None else _up_to(nodes, until),
        enable_cache=cache,
        beam_pipeline_args=list(config.pipeline.beam_args),
        metadata_connection_config=metadata
        or sqlite_metadata_connection_config(f"{root}/metadata.sqlite"),
    )


def _source(folder: str) -> str:
    return source_digest(f"components.{folder}.executor")


def _up_to(nodes: Sequence[BaseNode], until: str) -> list[BaseNode]:
    named = {node.id: node for node in nodes}
    if until not in named:
        raise UserError(f"--until must be one of {', '.join(named)}. Received: {until}.")
    wanted: set[str] = set()
    waiting = [until]
    while waiting:
        name = waiting.pop()
        if name not in wanted:
            wanted.add(name)
            waiting += _needed(named[name])
    kept = [node for node in nodes if node.id in wanted]
    for node in kept:
        # TFX refuses a node that was told of one which is not there.
        node.downstream_nodes.intersection_update(kept)
    return kept


def _needed(node: BaseNode) -> set[str]:
    """The nodes before one: those whose outputs it reads, and those it was told to wait for."""
    named = {upstream.id for upstream in node.upstream_nodes}
    return named.union(*(channel.get_data_dependent_node_ids() for channel in node.inputs.values()))
