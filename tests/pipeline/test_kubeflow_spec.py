"""The file for Kubeflow, the entry point of its pods, and its requests; all without Kubeflow."""

import json

import pytest
import yaml
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2
from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_run_executor as tfx

from pebr_tf.config import Config
from pebr_tf.errors import UserError
from pipeline import kubeflow_client, kubeflow_entry
from pipeline.cloud_check import problems
from pipeline.kubeflow_spec import compile_documents, to_yaml

EXAMPLES = "examples/{}.yaml"
ENTRY = ["python", "-m", "pipeline.kubeflow_entry"]
SECRET = {
    "secretName": "mlpipeline-minio-artifact",
    "keyToEnv": [
        {"secretKey": "accesskey", "envVar": "AWS_ACCESS_KEY_ID"},
        {"secretKey": "secretkey", "envVar": "AWS_SECRET_ACCESS_KEY"},
    ],
}
pytestmark = pytest.mark.usefixtures("same_code")


@pytest.fixture(scope="module")
def example():
    return Config.load(EXAMPLES.format("kubeflow"))


@pytest.mark.parametrize("target", ["vertex", "kubeflow", "airflow"])
def test_the_example_compiles(target, tmp_path, pebr):
    config = EXAMPLES.format(target)
    assert problems(Config.load(config), target) == []
    out = tmp_path / "pipeline"
    code, told, err = pebr("compile", "--target", target, "--config", config, "--out", str(out))
    assert (code, err) == (0, "")
    assert told.startswith(f"Wrote {out}: 11 tasks, image ")
    if target == "airflow":
        compile(out.read_bytes(), out, "exec")
        return
    documents = list(yaml.safe_load_all(out.read_text("utf-8")))
    assert len(documents) == (2 if target == "kubeflow" else 1)
    assert ("pipelineSpec" in documents[0]) == (target == "vertex")


@pytest.mark.parametrize("index_only", [False, True])
def test_the_file_has_what_kubeflow_reads(example, index_only):
    spec, platform = compile_documents(example, index_only=index_only)
    parsed = json_format.ParseDict(spec, pipeline_spec_pb2.PipelineSpec())
    json_format.ParseDict(platform, pipeline_spec_pb2.PlatformSpec())
    assert parsed.default_pipeline_root == "minio://mlpipeline/pebr"
    tasks = spec["root"]["dag"]["tasks"]
    assert "cachingOptions" not in tasks["ClickLogExampleGen"]
    assert tasks["IndexBuilder"]["cachingOptions"] == {"enableCache": True}
    for task in tasks.values():
        assert set(task.get("dependentTasks", ())) <= set(tasks)
    pods = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    executors = spec["deploymentSpec"]["executors"]
    assert pods.keys() == executors.keys()
    for name, executor in executors.items():
        container = executor["container"]
        assert container["command"] == ENTRY
        assert "lifecycle" not in container
        assert container["env"] == [
            {"name": "AWS_ENDPOINT_URL", "value": "http://minio-service.kubeflow:9000"}
        ]
        # Without a project, Beam bills none.
        assert not any("--project" in argument for argument in container["args"])
        labels = {"pool": "batch"}
        if name == "Trainer_executor":
            assert container["resources"]["accelerator"] == {"type": "nvidia.com/gpu", "count": "1"}
            labels["accelerator"] = "l4"
        assert pods[name] == {"nodeSelector": {"labels": labels}, "secretAsEnv": [SECRET]}


def test_one_document_if_pods_need_no_more(example):
    changes = {f"kubeflow.{key}": () for key in ("node_selector", "accelerator_selector")}
    config = example.replace_all({**changes, "kubeflow.secret": None, "kubeflow.environment": ()})
    (spec,) = compile_documents(config, span=7)
    parameters = spec["root"]["dag"]["tasks"]["ClickLogExampleGen"]["inputs"]["parameters"]
    assert parameters["wanted_span"]["runtimeValue"]["constant"] == 7
    assert not any(
        "env" in each["container"] for each in spec["deploymentSpec"]["executors"].values()
    )
    assert to_yaml([spec]) == to_yaml(compile_documents(config, span=7))


def test_checkpoints_are_where_tensorflow_can_write(example):
    for root, expected in (
        ("s3://a-b-c/run", "checkpoints"),
        ("gs://abc/run", "gs://abc/run/checkpoints"),
    ):
        (spec, *_) = compile_documents(example.replace("pipeline.root", root))
        parameters = spec["root"]["dag"]["tasks"]["Trainer"]["inputs"]["parameters"]
        custom = json.loads(parameters["custom_config"]["runtimeValue"]["constant"])
        assert custom["checkpoints"] == expected


def test_problems():
    changed = {
        "pipeline.root": "file:///srv/run",
        "pipeline.releases": "s3:///releases",
        "data.click_log": "hdfs://name/log",
        "data.catalogue": "bigquery://a.b.c",
        "cloud.dataflow.enabled": True,
        "training.strategy": "multi_worker",
        "cloud.training_job.workers": 2,
        "cloud.resources.trainer": "4 cpu, 16 GB, 1 NVIDIA_L4",
    }
    assert problems(Config().replace_all(changed), "kubeflow") == [
        "cloud.image must name an image to run on Kubeflow. Received: null.",
        "pipeline.root must be on s3://, minio:// or gs:// to run on Kubeflow. Received: "
        "'file:///srv/run', a path of this machine.",
        "pipeline.releases must be on s3://, minio:// or gs:// to run on Kubeflow. Received: "
        "'s3:///releases', which names no bucket.",
        "data.click_log must be on s3://, minio://, gs:// or bigquery:// to run on Kubeflow. "
        "Received: 'hdfs://name/log', which components there do not reach.",
        "cloud.dataflow.enabled must be false to run on Kubeflow. Received: true.",
        "cloud.training_job.workers must be 1 to run on Kubeflow. Received: 2.",
        "cloud.resources.trainer must name an accelerator by its resource in Kubernetes, such as "
        "nvidia.com/gpu. Received: '4 cpu, 16 GB, 1 NVIDIA_L4'.",
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"data.click_log": "bigquery://SELECT 1"},
            "cloud.project must name a project to run on Kubeflow. Received: null.",
        ),
        (
            {"data.catalogue": "bigquery://SELECT 1", "pipeline.beam_args": ["--project=shop-1"]},
            None,
        ),
        ({"data.click_log": "bigquery://SELECT 1", "cloud.project": "shop-1"}, None),
        (
            {"kubeflow.environment": ["AWS_REGION=eu-central-1"]},
            "kubeflow.environment must have AWS_ENDPOINT_URL, the address of the server of "
            "minio:// paths. Received: ['AWS_REGION=eu-central-1'].",
        ),
        ({"kubeflow.environment": [], "pipeline.root": "s3://shop/run"}, None),
        (
            {"pipeline.releases": "s3://shop/run?region=eu"},
            "pipeline.releases must be on s3://, minio:// or gs:// to run on Kubeflow. Received: "
            "'s3://shop/run?region=eu', with options, which components do not read.",
        ),
        # A pattern.
        ({"data.click_log": "s3://shop/run/clicks-?.tsv"}, None),
    ],
)
def test_what_a_pod_would_find_missing(changes, expected, example):
    found = problems(example.replace_all(changes), "kubeflow")
    assert found == ([] if expected is None else [expected])


def test_vertex_has_names_of_its_own(pebr, tmp_path):
    config = tmp_path / "pebr.yaml"
    example = Config.load(EXAMPLES.format("vertex"))
    example.replace("cloud.resources.trainer", "4 cpu, 16 GB, 2 nvidia.com/gpu").dump(config)
    assert pebr("compile", "--config", str(config)) == (
        2,
        "",
        "pebr: cloud.resources.trainer must name an accelerator of Vertex AI, such as NVIDIA_L4. "
        "Received: '4 cpu, 16 GB, 2 nvidia.com/gpu'.\n",
    )


def test_check_cloud_looks_for_no_credentials(pebr, tmp_path):
    config = EXAMPLES.format("kubeflow")
    code, out, _ = pebr("check-cloud", "--target", "kubeflow", "--config", config)
    assert code == 0
    assert out.splitlines()[:2] == [
        "image     registry.example.org/pebr/pebr:1-gpu",
        "root      minio://mlpipeline/pebr",
    ]
    (tmp_path / "pebr.yaml").write_text("{}")
    path = str(tmp_path / "pebr.yaml")
    assert pebr("compile", "--target", "kubeflow", "--config", path) == (
        2,
        "",
        "pebr: cloud.image must name an image to run on Kubeflow. Received: null (and 4 more: pebr "
        "check-cloud --target kubeflow --config FILE lists them).\n",
    )


def test_the_configuration_may_name_the_token(pebr, tmp_path, example):
    (tmp_path / "token").write_text("a-token")
    options = ("submit", "--target", "kubeflow", "--config", tmp_path / "pebr.yaml")
    for name, reason in {"nowhere": "must be a readable", "token": "The client of"}.items():
        example.replace("kubeflow.token_file", str(tmp_path / name)).dump(tmp_path / "pebr.yaml")
        code, _, err = pebr(*options)
        assert (code, reason in err) == (2, True)


def test_dry_runs_need_no_client(pebr):
    options = ("--target", "kubeflow", "--config", EXAMPLES.format("kubeflow"), "--dry-run")
    code, out, err = pebr("submit", *options, "--job-id", "night-1", "--no-cache")
    assert (code, err) == (0, "")
    run = json.loads(out)
    assert run["display_name"] == "night-1"
    assert run["service_account"] == "default-editor"
    assert run["runtime_config"] == {"parameters": {}, "pipeline_root": "minio://mlpipeline/pebr"}
    assert run["pipeline_spec"].keys() == {"pipeline_spec", "platform_spec"}
    tasks = run["pipeline_spec"]["pipeline_spec"]["root"]["dag"]["tasks"]
    assert not any("cachingOptions" in task for task in tasks.values())
    code, out, err = pebr("schedule", *options, "--cron", "0 3 * * 7")
    assert code == 0
    recurring = json.loads(out)
    assert recurring["trigger"] == {"cron_schedule": {"cron": "0 0 3 * * 0"}}
    assert (recurring["mode"], recurring["max_concurrency"]) == ("ENABLE", "1")
    assert (recurring["no_catchup"], recurring["display_name"]) == (True, "shop-search")
    assert [line[:17] for line in err.splitlines()] == ["next run: Sunday "] * 3


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ("submit", "--target", "kubeflow", "--config", EXAMPLES.format("kubeflow")),
            "The client of Kubeflow must be installed: pip install '.[pipeline,kubeflow]' in a "
            "clone. Received: none.",
        ),
        (
            (
                *("submit", "--target", "kubeflow", "--config", EXAMPLES.format("kubeflow")),
                *("--token-file", "nowhere"),
            ),
            "--token-file or kubeflow.token_file must be a readable file. Received: nowhere: "
            "[Errno 2] No such file or directory: 'nowhere'.",
        ),
        (
            (
                *("schedule", "--target", "kubeflow", "--config", "nowhere", "--cron", "0 3 * * *"),
                *("--time-zone", "Europe/Berlin"),
            ),
            "--time-zone must be left out with --target kubeflow, whose controller has one time "
            "zone for all schedules. Received: 'Europe/Berlin'.",
        ),
        (
            ("submit", "--config", "nowhere", "--host", "http://here"),
            "--host must come with --target kubeflow. Received: http://here.",
        ),
    ],
)
def test_mistakes(arguments, expected, pebr):
    assert pebr(*arguments) == (2, "", f"pebr: {expected}\n")


def test_a_host_is_required(example):
    with pytest.raises(UserError) as caught:
        kubeflow_client.connect(example.replace("kubeflow.host", None), None, None)
    assert str(caught.value) == (
        "--host or kubeflow.host must be the address of Kubeflow's API. Received: neither."
    )


def run_entry(task, spec, *others):
    given = (kubeflow_entry.TASK, json.dumps(task), kubeflow_entry.SPEC, json.dumps(spec))
    kubeflow_entry.main(["--executor_class_path", "a.B", *given, *others])


def test_the_entry_point_gives_types_and_local_paths_and_reports_addresses(tmp_path, monkeypatch):
    model = {"instanceSchema": "title: tfx.Model"}
    out = tmp_path / "output.json"
    task = {
        "inputs": {
            "artifacts": {
                "model": {"artifacts": [{"name": "7", "uri": "s3://b/run/model", "type": {}}]},
                "schema": {"artifacts": [{"uri": "gs://b/schema", "customPath": "/mnt/schema"}]},
            }
        },
        "outputs": {
            "artifacts": {"index": {"artifacts": [{"uri": "minio://b/i", "type": model}]}},
            "outputFile": str(out),
        },
    }
    spec = {"artifacts": {key: {"artifactType": model} for key in ("model", "schema")}}

    def run(parsed):
        flags, others = parsed
        given = json.loads(flags.json_serialized_invocation_args)
        assert (flags.executor_class_path, others) == ("a.B", ["--direct_num_workers=1"])
        found = {
            key: given[side]["artifacts"][key]["artifacts"][0]
            for side, key in (("inputs", "model"), ("inputs", "schema"), ("outputs", "index"))
        }
        assert {key: each["uri"] for key, each in found.items()} == {
            "model": "/s3/b/run/model",
            "schema": "/mnt/schema",
            "index": "/minio/b/i",
        }
        assert all(each["type"] == model for each in found.values())
        index = {"uri": "/minio/b/i", "metadata": {"version": 3.0, "nothing": None}}
        out.write_text(json.dumps({"artifacts": {"index": {"artifacts": [index]}}}))

    monkeypatch.setattr(tfx, "main", run)
    run_entry(task, spec, "--direct_num_workers=1")
    assert json.loads(out.read_text())["artifacts"]["index"]["artifacts"] == [
        {"uri": "minio://b/i", "metadata": {"version": 3.0}}
    ]


def test_a_mistake_of_the_user_is_one_sentence(monkeypatch):
    def fail(parsed):
        raise UserError("data must be good. Received: bad.")

    monkeypatch.setattr(tfx, "main", fail)
    with pytest.raises(SystemExit) as caught:
        run_entry({}, {})
    assert caught.value.code == "pebr: data must be good. Received: bad."
