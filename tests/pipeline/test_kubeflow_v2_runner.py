"""The compiled job: valid for the protos, with the whole configuration; its command."""

import functools
import importlib
import json

import pytest
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2
from test_pipeline import NODES
from tfx.extensions.google_cloud_ai_platform.training_clients import VertexJobClient
from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_entrypoint_utils as entrypoint
from tfx.types.artifact import Artifact
from tfx.utils import import_utils
from vertex_server import IDENTITY, cloud_config

from components.artifacts import NAMES
from pipeline.kubeflow_v2_runner import beam_args, compile_job, to_bytes

SPANS = {
    "data.click_log": "gs://shop-logs/clicks/{SPAN}/*.parquet",
    "data.catalogue": "gs://shop-logs/items/{SPAN}/*.parquet",
}
CLOUD = cloud_config(**SPANS, **IDENTITY)
COMPONENTS = set(NODES)
# Pointers change without a trace in the cache key.
UNCACHED = {"ExampleValidator", "LastBlessedModel"}
BEAM = {"ClickLogExampleGen", "StatisticsGen", "Transform", "IndexBuilder"}
pytestmark = pytest.mark.usefixtures("same_code")


@functools.lru_cache
def compiled(changes=(), index_only=False):
    """The job of CLOUD with changes, compiled once for all tests."""
    return to_bytes(compile_job(CLOUD.replace_all(dict(changes)), index_only=index_only))


def job_of(changes=None, index_only=False):
    return json.loads(compiled(tuple((changes or {}).items()), index_only))


def tasks(job):
    return job["pipelineSpec"]["root"]["dag"]["tasks"]


def executors(job):
    return job["pipelineSpec"]["deploymentSpec"]["executors"]


def container(job, component):
    return executors(job)[f"{component}_executor"]["container"]


def containers(job):
    return {name: container(job, name) for name in COMPONENTS & set(tasks(job))}


@pytest.mark.parametrize("index_only", [False, True])
def test_the_protos_accept_it(index_only):
    job = job_of(index_only=index_only)
    parsed = json_format.Parse(compiled(index_only=index_only), pipeline_spec_pb2.PipelineJob())
    spec = json_format.ParseDict(job["pipelineSpec"], pipeline_spec_pb2.PipelineSpec())
    assert parsed.runtime_config.gcs_output_directory == CLOUD.pipeline.root
    assert spec.schema_version == "2.1.0"
    trained = set() if index_only else {"Transform", "Trainer"}
    assert set(spec.root.dag.tasks) == (COMPONENTS - {"Transform", "Trainer"}) | trained
    assert not any("resolver" in executor for executor in executors(job).values())
    # The plain struct parses into its message.
    deployment = json_format.ParseDict(
        job["pipelineSpec"]["deploymentSpec"], pipeline_spec_pb2.PipelineDeploymentConfig()
    )
    assert len(deployment.executors) == len(spec.root.dag.tasks)


def test_every_component_has_its_machine_image_and_retries():
    job = job_of(
        {
            "cloud.resources.trainer": "16 cpu, 60 GB, 2 NVIDIA_L4",
            "cloud.resources.schema_gen": "1 cpu, 3 GB",
            "cloud.retries": 5,
        }
    )
    accelerator = {"accelerator": {"type": "NVIDIA_L4", "count": "2"}}
    special = {"Trainer": (16.0, 60.0, accelerator), "SchemaGen": (1.0, 3.0, {})}
    for name, each in containers(job).items():
        assert each["image"] == CLOUD.cloud.image
        cpu, memory, others = special.get(name, (4.0, 16.0, {}))
        assert each["resources"] == {"cpuLimit": cpu, "memoryLimit": memory, **others}
        position = each["args"].index("--executor_class_path")
        assert isinstance(import_utils.import_class_by_path(each["args"][position + 1]), type)
        assert tasks(job)[name]["retryPolicy"]["maxRetryCount"] == 5
        assert ("cachingOptions" not in tasks(job)[name]) == (name in UNCACHED)

    job = job_of({"cloud.retries": 0, "cloud.cache": False})
    assert not any("retryPolicy" in task for task in tasks(job).values())
    assert not any("cachingOptions" in tasks(job)[name] for name in COMPONENTS)


def test_a_reviewed_schema_is_neither_read_here_nor_cached():
    job = job_of({"data.schema": "gs://shop/schema.pbtxt"})
    assert "SchemaGen" not in tasks(job)
    assert "cachingOptions" not in tasks(job)["ImportSchemaGen"]
    assert container(job, "ImportSchemaGen")["resources"]["cpuLimit"] == 4.0


def test_without_dataflow_beam_gets_the_arguments_of_the_config():
    job = job_of({"pipeline.beam_args": ("--direct_num_workers=4",)})
    for name, each in containers(job).items():
        assert ("--direct_num_workers=4" in each["args"]) == (name in BEAM)
        # BigQuery bills its queries to the project.
        assert ("--project=shop-1" in each["args"]) == (name in BEAM)


def test_dataflow_gets_all_its_options():
    config = CLOUD.replace_all(
        {
            "cloud.dataflow.enabled": True,
            "cloud.dataflow.subnetwork": "regions/europe-west4/subnetworks/batch",
            "cloud.dataflow.public_ips": False,
            "cloud.dataflow.max_workers": 30,
        }
    )
    options = importlib.import_module("apache_beam.options.pipeline_options")
    parsed = options.PipelineOptions(beam_args(config))
    google = parsed.view_as(options.GoogleCloudOptions)
    worker = parsed.view_as(options.WorkerOptions)
    assert parsed.view_as(options.StandardOptions).runner == "DataflowRunner"
    assert (google.project, google.region) == ("shop-1", "europe-west4")
    assert google.temp_location == "gs://shop-pebr/run/dataflow/temp"
    assert google.service_account_email == CLOUD.cloud.service_account
    assert worker.sdk_container_image == CLOUD.cloud.image
    assert (worker.max_num_workers, worker.machine_type) == (30, "e2-standard-4")
    assert worker.use_public_ips is False
    assert worker.subnetwork.endswith("/batch")
    # Beam ignores unknown options.
    known = {name.replace("-", "_") for name in parsed.get_all_options()}
    for argument in beam_args(config):
        name = argument.removeprefix("--").partition("=")[0].removeprefix("no_")
        assert name in known, argument
    job = compile_job(config)
    for name, each in containers(job).items():
        assert ("--runner=DataflowRunner" in each["args"]) == (name in BEAM)


def test_the_driver_finds_new_spans_before_the_cache_check():
    job = job_of()
    assert "wanted_span" not in tasks(job)["ClickLogExampleGen"]["inputs"]["parameters"]
    hook = container(job, "ClickLogExampleGen")["lifecycle"]["preCacheCheck"]
    assert hook["command"][:2] == ["python", "-m"]
    importlib.import_module(hook["command"][2])
    assert hook["args"][:2] == ["--json_serialized_invocation_args", "{{$}}"]
    assert "--executor_class_path" not in hook["args"]
    others = COMPONENTS - {"ClickLogExampleGen"}
    assert not any("lifecycle" in container(job, name) for name in others)


@pytest.mark.parametrize("name", NAMES)
def test_artifact_types_resolve_in_the_container(name):
    outputs = [
        definition["artifactType"]
        for component in job_of()["pipelineSpec"]["components"].values()
        for definition in component.get("outputDefinitions", {}).get("artifacts", {}).values()
    ]
    (kind,) = [each for each in outputs if f"components.{name}" in each["instanceSchema"]]
    metadata = {"version": 3, "word": "a"}
    given = {"name": "store/1", "uri": "gs://x", "type": kind, "metadata": metadata}
    parsed = json_format.ParseDict(given, pipeline_spec_pb2.RuntimeArtifact())
    raw = {"a": pipeline_spec_pb2.ArtifactList(artifacts=[parsed])}
    (artifact,) = entrypoint.parse_raw_artifact_dict(raw)["a"]
    assert isinstance(artifact, Artifact)
    assert type(artifact).__name__ == name
    assert artifact.get_int_custom_property("version") == 3
    assert artifact.get_string_custom_property("word") == "a"


def test_several_workers_are_a_custom_job(monkeypatch):
    job = job_of(
        {
            "training.strategy": "multi_worker",
            "cloud.training_job.workers": 4,
            "cloud.training_job.machine_type": "g2-standard-12",
            "cloud.resources.trainer": "2 cpu, 8 GB, 1 NVIDIA_L4",
        }
    )
    # The container only waits for the workers, which have the accelerators.
    assert container(job, "Trainer")["resources"] == {"cpuLimit": 2.0, "memoryLimit": 8.0}
    parameters = tasks(job)["Trainer"]["inputs"]["parameters"]
    custom = json.loads(parameters["custom_config"]["runtimeValue"]["constant"])
    arguments = custom["ai_platform_training_args"]
    assert arguments.pop("project") == "shop-1"
    assert custom["ai_platform_vertex_region"] == "europe-west4"
    # The request of TFX, as a message of the client library.
    monkeypatch.setattr(VertexJobClient, "create_client", lambda self: None)
    sent = VertexJobClient("europe-west4").create_training_job(
        {}, {}, {"custom_config": "{}"}, "tfx.components.trainer.executor.GenericExecutor",
        arguments, None, {},
    )  # fmt: skip
    from google.cloud.aiplatform_v1.types import CustomJob

    spec = CustomJob(sent).job_spec
    chief, others = spec.worker_pool_specs
    assert (chief.replica_count, others.replica_count) == (1, 3)
    for pool in (chief, others):
        assert pool.machine_spec.machine_type == "g2-standard-12"
        assert pool.machine_spec.accelerator_type.name == "NVIDIA_L4"
        assert pool.container_spec.image_uri == CLOUD.cloud.image
        assert list(pool.container_spec.command[:3]) == ["python", "-m", "tfx.scripts.run_executor"]
    assert spec.scheduling.restart_job_on_worker_restart
    assert spec.service_account == CLOUD.cloud.service_account
    assert spec.network == CLOUD.cloud.network


@pytest.mark.parametrize("options", [{"index_only": False}, {"index_only": True, "span": 7}])
def test_the_command_writes_the_job(pebr, tmp_path, options):
    config, out = tmp_path / "pebr.yaml", tmp_path / "out/pipeline.json"
    CLOUD.dump(config)
    arguments = ("--index-only", "--span", "7") if options["index_only"] else ()
    told = f"Wrote {out}: {9 if arguments else 11} tasks, image {CLOUD.cloud.image}.\n"
    assert pebr("compile", "--config", config, "--out", out, *arguments) == (0, told, "")
    assert out.read_bytes() == to_bytes(compile_job(CLOUD, **options))
