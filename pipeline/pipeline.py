"""The pipeline, in the order of its flow: from click logs to a pushed release."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tfx.components.schema_gen.component import SchemaGen
from tfx.components.statistics_gen.component import StatisticsGen
from tfx.components.trainer.component import Trainer
from tfx.components.transform.component import Transform
from tfx.dsl.components.base.base_node import BaseNode
from tfx.extensions.google_cloud_ai_platform.constants import ENABLE_VERTEX_KEY, VERTEX_REGION_KEY
from tfx.extensions.google_cloud_ai_platform.trainer.component import Trainer as JobTrainer
from tfx.extensions.google_cloud_ai_platform.trainer.executor import TRAINING_ARGS_KEY
from tfx.orchestration.pipeline import Pipeline
from tfx.proto import trainer_pb2, transform_pb2
from tfx.types import BaseChannel

from components.click_log_example_gen.component import ClickLogExampleGen
from components.cutoff_calibrator.component import CutoffCalibrator
from components.example_validator.component import ExampleValidator
from components.index_builder.component import IndexBuilder
from components.last_blessed_model.component import LastBlessedModel
from components.pusher.component import Pusher
from components.retrieval_evaluator.component import RetrievalEvaluator
from components.reviewed_schema import ImportSchemaGen
from pebr_tf.config import Cloud, Config, Machine
from pebr_tf.errors import UserError
from pipeline import trainer
from pipeline.source import source_digest


@dataclass(frozen=True)
class Options:
    """Options of one run, beside the configuration.

    Attributes:
      index_only: Whether a new index is built with the last blessed model, without training.
      span: The span to read, in days since 1970 where patterns have a date; None: the latest.
      cloud: Whether the pipeline is compiled for Kubeflow v2 rather than run here.
    """

    index_only: bool = False
    span: int | None = None
    cloud: bool = False


WHOLE = Options()
# Reads and writes a pointer, which no cache key holds.
NEVER_CACHED = "ExampleValidator"


def components_of(config: Config, options: Options = WHOLE) -> list[BaseNode]:
    """All nodes, each after those that it depends on."""
    example_gen = ClickLogExampleGen(config, _source("click_log_example_gen"), options.span)
    examples, catalogue = (example_gen.outputs[name] for name in ("examples", "catalogue"))
    statistics = StatisticsGen(examples=example_gen.outputs["samples"])
    if config.data.schema is None:
        schema = SchemaGen(statistics=statistics.outputs["statistics"], infer_feature_shape=True)
    else:
        schema = ImportSchemaGen(config.data.schema, read=not options.cloud)
    validator = ExampleValidator(
        config, _source("example_validator"), **statistics.outputs, **schema.outputs
    )
    # An index-only run may use a model that was trained on the same clicks.
    blessed = LastBlessedModel(config, None if options.index_only else examples)
    # Rejected data reaches neither training nor, in an index-only run, the index. The edges are
    # explicit because the validator has no output that others read.
    blessed.add_upstream_node(validator)
    earlier = blessed.outputs["model"]
    nodes = [example_gen, statistics, schema, validator, blessed]
    if options.index_only:
        model = earlier
    else:
        transform = _transform(config, examples, schema.outputs["schema"])
        transform.add_upstream_node(validator)
        graph = transform.outputs["transform_graph"]
        training = _trainer(config, options, examples, graph, earlier)
        model = training.outputs["model"]
        nodes += [transform, training]
    builder = IndexBuilder(
        config,
        _source("index_builder"),
        fit=options.index_only,
        catalogue=catalogue,
        model=model,
        examples=examples,
    )
    measured = {"examples": examples, "model": model, "index": builder.outputs["index"]}
    calibrator = CutoffCalibrator(config, _source("cutoff_calibrator"), **measured)
    measured["cutoff"] = calibrator.outputs["cutoff"]
    # An index-only run would compare the model with itself.
    compared = {} if options.index_only else {"catalogue": catalogue, "baseline": earlier}
    evaluator = RetrievalEvaluator(config, _source("retrieval_evaluator"), **measured, **compared)
    pusher = Pusher(config, _source("pusher"), **measured, **evaluator.outputs)
    return [*nodes, builder, calibrator, evaluator, pusher]


def _transform(config: Config, examples: BaseChannel, schema: BaseChannel) -> Transform:
    return Transform(
        examples=examples,
        schema=schema,
        preprocessing_fn="pipeline.preprocessing.preprocessing_fn",
        splits_config=transform_pb2.SplitsConfig(analyze=["texts"], transform=[]),
        custom_config={
            "features": config.features.to_mapping(),
            "strata": config.strata.to_mapping(),
            "source": source_digest("pipeline.preprocessing"),
        },
        materialize=False,
        disable_statistics=True,
    )


def _trainer(
    config: Config,
    options: Options,
    examples: BaseChannel,
    graph: BaseChannel,
    earlier: BaseChannel,
) -> Trainer:
    sections, root = config.to_mapping(), config.pipeline.root
    # TensorFlow writes to neither s3:// nor minio://: a training that fails there starts again.
    is_writable = not root.startswith(("s3://", "minio://"))
    custom = {
        "config": {name: sections[name] for name in trainer.SECTIONS},
        "checkpoints": f"{root}/checkpoints" if is_writable else "checkpoints",
        "average_k": config.evaluation.average_k,
        "source": source_digest("pipeline.trainer"),
    }
    arguments = {
        "run_fn": "pipeline.trainer.run_fn",
        "examples": examples,
        "transform_graph": graph,
        "train_args": trainer_pb2.TrainArgs(splits=["train"]),
        # Not evaluation data: TFX passes a second split to `run_fn` only under this name.
        "eval_args": trainer_pb2.EvalArgs(splits=["texts"]),
    }
    if config.training.warm_start:
        arguments["base_model"] = earlier
    if options.cloud and config.cloud.training_job.workers > 1:
        return JobTrainer(custom_config={**custom, **_job(config.cloud)}, **arguments)
    return Trainer(custom_config=custom, **arguments)


def _job(cloud: Cloud) -> dict[str, Any]:
    """A CustomJob on Vertex AI that the Trainer for several workers starts and waits for.

    A component is one container. Vertex AI gives the workers of a CustomJob a TF_CONFIG that lists
    all of them, and TFX's Trainer for Vertex AI runs `run_fn` in each.
    """
    machine = Machine.of(cloud.resources.trainer)
    machine_spec: dict[str, Any] = {"machine_type": cloud.training_job.machine_type}
    if machine.accelerator is not None:
        machine_spec["accelerator_type"] = machine.accelerator
        machine_spec["accelerator_count"] = machine.accelerators
    pools = [
        {
            "machine_spec": machine_spec,
            "replica_count": count,
            "container_spec": {"image_uri": cloud.image},
        }
        for count in (1, cloud.training_job.workers - 1)
    ]
    spec: dict[str, Any] = {
        "worker_pool_specs": pools,
        # One worker cannot restart alone: all continue from the last checkpoint.
        "scheduling": {"restart_job_on_worker_restart": True},
    }
    for key in ("service_account", "network"):
        if (value := getattr(cloud, key)) is not None:
            spec[key] = value
    return {
        ENABLE_VERTEX_KEY: True,
        VERTEX_REGION_KEY: cloud.region,
        TRAINING_ARGS_KEY: {"project": cloud.project, "job_spec": spec},
    }


def create_pipeline(
    config: Config,
    until: str | None = None,
    cache: bool = True,
    options: Options = WHOLE,
) -> Pipeline:
    """The pipeline of a configuration, for a local run.

    It ends with the component `until`, which is run with all that it depends on. With `cache`,
    unchanged components take their results from earlier runs.
    """
    root = config.pipeline.root
    nodes = components_of(config, options)
    return Pipeline(
        pipeline_name=config.pipeline.name,
        pipeline_root=f"{root}/artifacts",
        components=nodes if until is None else _up_to(nodes, until),
        enable_cache=cache,
        beam_pipeline_args=list(config.pipeline.beam_args),
    )


def _source(folder: str) -> str:
    return source_digest(f"components.{folder}.executor")


def _up_to(nodes: Sequence[BaseNode], until: str) -> list[BaseNode]:
    named = {node.id: node for node in nodes}
    if until not in named:
        raise UserError(f"--until must be one of {', '.join(named)}. Received: {until}.")
    wanted = {until}
    for node in reversed(nodes):
        if node.id in wanted:
            wanted |= _needed(node)
    kept = [node for node in nodes if node.id in wanted]
    for node in kept:
        # TFX rejects a node with a dependant that is not in the pipeline.
        node.downstream_nodes.intersection_update(kept)
    return kept


def _needed(node: BaseNode) -> set[str]:
    """Ids of the nodes whose outputs a node reads, and of its explicit dependencies."""
    named = {upstream.id for upstream in node.upstream_nodes}
    return named.union(*(channel.get_data_dependent_node_ids() for channel in node.inputs.values()))
